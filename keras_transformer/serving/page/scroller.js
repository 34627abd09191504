// A hint that a picture is larger than its box.

import { hovers } from "./touch.js";

const SLACK = 2; // CSS pixels that a rounded size may differ by

export class Scroller {
  // `resized()` is called when the box has another size.
  constructor(box, note, resized) {
    Object.assign(this, { box, note, resized });
    box.addEventListener("scroll", () => this.hint());
    new ResizeObserver(() => this.show()).observe(box, { box: "border-box" });
  }

  show() {
    this.resized();
    this.hint();
  }

  hint() {
    const { box, note } = this;
    const right = Math.abs(box.scrollLeft) + box.clientWidth < box.scrollWidth - SLACK;
    const below = box.scrollTop + box.clientHeight < box.scrollHeight - SLACK;
    const beyond = { left: Math.abs(box.scrollLeft) > SLACK, right, above: box.scrollTop > SLACK, below };
    for (const [side, isBeyond] of Object.entries(beyond)) {
      box.parentElement.style.setProperty(`--${side}`, Number(isBeyond));
    }
    const arrows = `${right ? "→" : ""}${below ? "↓" : ""}`;
    note.hidden = !arrows;
    note.textContent = `${hovers() ? "Scroll" : "Swipe"} for more ${arrows}`;
  }
}
