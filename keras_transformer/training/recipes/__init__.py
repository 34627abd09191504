"""Built-in recipes: TOML files with the options of `TranslationRecipe`, one per run."""
