import { env, pipeline } from "@huggingface/transformers";

env.localModelPath = "served/";
const translate = await pipeline("translation", "tatoeba-de", { dtype: "q8" });
console.log(await translate(["Where is the next train station?"]));
