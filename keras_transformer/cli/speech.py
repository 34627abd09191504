"""Commands that transcribe speech, write subtitles and speak texts."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from keras_transformer.cli.common import (
    Precision,
    SourceLanguage,
    TargetLanguage,
    opened,
    say,
    searching,
    write_utf8,
)
from keras_transformer.cli.folders import saved, saved_argument
from keras_transformer.config import require
from keras_transformer.data.lines import one_line
from keras_transformer.search import TRANSCRIBE, Transcription
from keras_transformer.speech.cue_limits import CueLimits

STDIN = Path("-")
LIMITS = ("characters", "lines", "rate")


@searching(Transcription, TRANSCRIBE)
def transcribe(
    folder: Annotated[Path, saved_argument("A saved transcriber")],
    sounds: Annotated[
        list[Path],
        typer.Argument(
            help="16-bit WAV files, any sample rate; - for stdin, while it arrives.",
            metavar="SOUND",
        ),
    ],
    words: Annotated[
        bool, typer.Option("--words", help="Write JSON lines, with the times of the words.")
    ] = False,
    pcm: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Sample rate of stdin, if that is 16-bit PCM (s16le, mono) without a header.",
        ),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(help="Spoken language, such as en.  [default: of the folder, or detected]"),
    ] = None,
    task: Annotated[
        str, typer.Option(help="transcribe, or translate (into English).")
    ] = "transcribe",
    precision: Precision = None,
    **search: Any,
) -> None:
    """Transcribe speech: one line of text per file.

    With --words, write one JSON object per file: the sound, its text, and its words with start and
    end in seconds. From stdin, words are written while the sound arrives, as soon as two
    transcriptions in a row agree on them; with --words, one JSON object per word.

    \b
    Examples:
        keras-transformer transcribe saved_models/whisper-tiny interview.wav --language en
        arecord -f S16_LE -r 16000 -t wav | keras-transformer transcribe saved_models/whisper-tiny -
    """
    from keras_transformer.speech.transcriber import Transcriber

    live = STDIN in sounds
    require(not live or len(sounds) == 1, "SOUND", "- and others", "- alone, or files")
    require(live or pcm is None, "--pcm", pcm, "given only with - as SOUND")
    transcriber = Transcriber.load(folder, precision)
    options = dict(language=language, task=task, **search)
    write_utf8()
    if live:
        _live(transcriber, pcm, words, options)
        return
    for sound in sounds:
        if words:
            (timed_words,) = transcriber.transcribe_words([sound], **options)
            text = " ".join(x.word for x in timed_words)
            value = dict(
                sound=str(sound), text=text, words=list(map(dataclasses.asdict, timed_words))
            )
            print(json.dumps(value, ensure_ascii=False), flush=True)
        else:
            print(one_line(transcriber.transcribe([sound], **options)[0]), flush=True)


@searching(CueLimits, LIMITS)
def subtitles(
    folder: Annotated[Path, saved_argument("A saved transcriber")],
    sound: Annotated[Path, typer.Argument(help="16-bit WAV file, any sample rate.")],
    output_file: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write, .srt or .vtt.  [default: stdout]"),
    ] = None,
    translator: Annotated[
        Path | None,
        typer.Option(**saved("A translator of what is spoken")),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(help="Spoken language, such as en.  [default: of the folder, or detected]"),
    ] = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    precision: Precision = None,
    **limits: Any,
) -> None:
    """Write subtitles of a recording, at the times of its words.

    With --translator, the translation of each sentence is divided over its time.

    \b
    Example:
        keras-transformer subtitles saved_models/whisper-tiny talk.wav -o talk.de.vtt
            --translator tatoeba --source-language en --target-language de
    """
    from keras_transformer.speech.cues import cues_of, subtitle_file, suffix_of_subtitles
    from keras_transformer.speech.transcriber import Transcriber

    suffix, allowed = suffix_of_subtitles(output_file), CueLimits(**limits)
    transcriber = Transcriber.load(folder, precision)
    (words,) = transcriber.transcribe_words([sound], language=language)
    if translator is not None:
        from keras_transformer.speech.spoken_translation import translate_words
        from keras_transformer.translate.translator import Translator

        model = Translator.load(translator, precision, source_language, target_language)
        words = translate_words(model, words)
    cues = list(cues_of(words, allowed))
    with opened(output_file) as out:
        out.writelines(subtitle_file(cues, suffix))
    if fast := sum(not allowed.is_met_by(cue) for cue in cues):
        say(f"{fast} of {len(cues)} cues are shorter than --rate demands: the next one follows")


def speak(
    folder: Annotated[Path, saved_argument("A saved synthesizer")],
    text: Annotated[str, typer.Argument(help="Text to speak.")],
    output_file: Annotated[Path, typer.Option("--output", "-o", help="WAV file to write.")],
    speaker: Annotated[
        str | None, typer.Option(help="Name of the speaker.  [default: the model's first]")
    ] = None,
    precision: Precision = None,
) -> None:
    """Speak a text: write a WAV file of 16-bit PCM.

    \b
    Example:
        keras-transformer speak saved_models/voices "seven" --speaker theo -o seven.wav
    """
    from keras_transformer.data.audio import write_wav
    from keras_transformer.speech.synthesizer import Synthesizer

    synthesizer = Synthesizer.load(folder, precision)
    (samples,) = synthesizer.speak([text], speaker=speaker)
    write_wav(output_file, samples, synthesizer.sample_rate)


def _live(transcriber, pcm, as_json, options):
    """Print the words of a sound on stdin while it arrives."""
    from keras_transformer.data.audio import sound_chunks

    rate, chunks = sound_chunks(sys.stdin.buffer, pcm)
    for i, word in enumerate(transcriber.stream(chunks, sample_rate=rate, **options)):
        if as_json:
            print(json.dumps(dataclasses.asdict(word), ensure_ascii=False), flush=True)
        else:
            print(f" {word.word}" if i else word.word, end="", flush=True)
    if not as_json:
        print()
