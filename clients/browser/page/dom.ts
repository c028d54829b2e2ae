/** Parts of the page by their names. */

export const find = <T extends Element>(id: string): T => document.querySelector<T>(`#${id}`)!;
export const show = (id: string, visible = true): void => void find(id).toggleAttribute("hidden", !visible);
export const say = (id: string, text: string): void => void (find(id).textContent = text);

/** An element of SVG with attributes and what is in it. */
export function svg(name: string, attributes: Record<string, string | number> = {}, text = ""): SVGElement {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.textContent = text;
  return made;
}
