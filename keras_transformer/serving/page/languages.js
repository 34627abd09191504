// Two language selects: the source, and the targets that are served from it.

export class LanguagePair {
  // `entries` is the answer of the route `languages`; `detects`: whether "auto" is a source, too.
  constructor(source, target, entries, detects = true) {
    this.selects = { source, target };
    this.auto = detects ? [["auto", "Detect language"]] : [];
    this.languages = new Map(entries.map((language) => [language.code, language]));
    this.sources = entries.filter((language) => language.targets.length);
    source.addEventListener("change", () => this.choose(this.source, this.target));
  }

  get source() {
    return this.selects.source.value;
  }

  get target() {
    return this.selects.target.value;
  }

  name(code) {
    return this.languages.get(code)?.name ?? code;
  }

  targets(source) {
    if (source !== "auto") return this.languages.get(source)?.targets ?? [];
    return [...new Set(this.sources.flatMap((language) => language.targets))];
  }

  // Choose a pair; a language that is not served is replaced by the first one.
  choose(source, target) {
    const sources = this.sources.map(({ code, name }) => [code, name]);
    fill(this.selects.source, [...this.auto, ...sources], source);
    const targets = this.targets(this.source).map((code) => [code, this.name(code)]);
    fill(this.selects.target, targets, target);
  }

  // Name the detected language, if there is one, and its confidence in percent.
  detect(found) {
    const sure = found && `${this.name(found.language)} (detected, ${Math.round(found.confidence)} %)`;
    this.selects.source.options[0].text = sure ?? "Detect language";
  }

  // Return the target after a swap: the source; if that is "auto", `read`, the language detected in
  // the text, else the first language into which the target is translated.
  back(read) {
    if (this.source !== "auto") return this.source;
    return read ?? this.targets(this.target)[0];
  }

  // Return why the languages cannot be swapped, or "".
  whyNotSwapped(read) {
    const [source, target] = [this.back(read), this.target];
    if (!source) return `No model translates from ${this.name(target)}.`;
    if (source === target) return `The text is in ${this.name(target)} already.`;
    if (this.targets(target).includes(source)) return "";
    return `One way only: no model translates ${this.name(target)} into ${this.name(source)}.`;
  }
}

function fill(select, entries, chosen) {
  select.replaceChildren(...entries.map(([code, name]) => new Option(name, code)));
  const codes = entries.map(([code]) => code);
  select.value = codes.includes(chosen) ? chosen : codes[0];
}

// The pair in the address of a page, and an address with a pair.

export function pairInAddress() {
  const fields = new URL(location).searchParams;
  return { source: fields.get("source"), target: fields.get("target") };
}

export function withPair(path, { source, target }) {
  return `${path}?${new URLSearchParams({ source, target })}`;
}
