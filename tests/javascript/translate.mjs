// node translate.mjs TRANSFORMERS FOLDER: reads {"dtype": ..., "batches": [[...]]} from stdin, and
// prints the translations of each batch by the model in FOLDER.
import fs from "node:fs";
import path from "node:path";

const [file, folder] = process.argv.slice(2);
const { env, pipeline } = await import(file);
env.allowRemoteModels = false;
env.localModelPath = path.dirname(folder);
const { dtype, batches } = JSON.parse(fs.readFileSync(0));
const translate = await pipeline("translation", path.basename(folder), { dtype });
const results = [];
for (const batch of batches) {
  results.push((await translate(batch)).map((x) => x.translation_text));
}
console.log(JSON.stringify(results));
