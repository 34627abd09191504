// Whether there is a pointer that can hover, such as a mouse: words for a touch screen differ.

export const hovers = () => matchMedia("(hover: hover)").matches;
