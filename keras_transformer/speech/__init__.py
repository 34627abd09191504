"""Speech recognition (`Transcriber`) and speech synthesis (`Synthesizer`)."""
