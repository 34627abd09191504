// The clipboard.

// Copy the text of an element, and say so on the button.
export async function copy(element, button) {
  try {
    await navigator.clipboard.writeText(element.textContent);
  } catch {
    // The clipboard API is available only over https and on localhost.
    getSelection().selectAllChildren(element);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = "Copy"), 2000);
}
