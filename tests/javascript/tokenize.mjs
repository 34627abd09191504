// node tokenize.mjs TOKENIZERS: reads {"files": [...], "texts": [...], "ids": [[[...]]]} from stdin,
// and prints for each file the ids of the texts, and the texts of its ids.
import fs from "node:fs";

const { Tokenizer } = await import(process.argv[2]);
const { files, texts, ids } = JSON.parse(fs.readFileSync(0));
const results = files.map((file, i) => {
  const options = { clean_up_tokenization_spaces: false };
  const tokenizer = new Tokenizer(JSON.parse(fs.readFileSync(file)), options);
  return [
    texts.map((text) => tokenizer.encode(text).ids),
    ids[i].map((row) => tokenizer.decode(row)),
  ];
});
console.log(JSON.stringify(results));
