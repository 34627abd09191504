"""Built-in recipes: TOML files with options of `TranslationRecipe`."""
