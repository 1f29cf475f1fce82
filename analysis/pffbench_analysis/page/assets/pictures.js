// A figure as one SVG or PNG: title, panels and notes as they are seen, in colours that any program knows.
const SVG = "http://www.w3.org/2000/svg";
const LINE = 20;
const FONT = DATA.specs.medians.config.font;

function svgNode(name, attributes, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function written(text, x, y, size, weight = 400) {
  return svgNode("text", { x, y, "font-size": size, "font-weight": weight, "font-family": FONT, fill: "currentColor" }, text);
}

// Break text into lines that are about so many pixels wide.
function linesOf(text, width) {
  const most = Math.max(20, Math.floor(width / 6.6));
  return text.split(" ").reduce((lines, word) => {
    const longer = `${lines.at(-1)} ${word}`.trim();
    return longer.length <= most ? [...lines.slice(0, -1), longer] : [...lines, word];
  }, [""]);
}

function pictureOf(figure) {
  const chart = figure.querySelector(".chart").getBoundingClientRect();
  const [title, what, notes] = ["h3", ".what", ".notes"].map((place) => figure.querySelector(place).textContent);
  const head = linesOf(what, chart.width);
  if (DATA.stamp) head.unshift(`${DATA.stamp}: these numbers must not be used.`);
  const foot = linesOf(`${notes} ${DATA.run}`, chart.width);
  const top = LINE * (head.length + 2);
  const [width, height] = [Math.ceil(chart.width) + 20, Math.ceil(top + chart.height + LINE * (foot.length + 1))];
  const picture = svgNode("svg", { xmlns: SVG, width, height, viewBox: `-10 0 ${width} ${height}` });
  picture.append(svgNode("rect", { x: -10, width, height, fill: "var(--page)" }));
  picture.append(written(title, 0, LINE, 17, 650), ...head.map((line, i) => written(line, 0, LINE * (i + 2), 13)));
  for (const entry of figure.querySelectorAll(".legend > span")) {
    const [x, y] = [entry.getBoundingClientRect().x - chart.x, top + entry.getBoundingClientRect().y - chart.y];
    const fill = getComputedStyle(entry.firstElementChild).backgroundColor;
    picture.append(svgNode("rect", { x, y: y + 5, width: 10, height: 10, fill }), written(entry.textContent, x + 15, y + 14, 12));
  }
  for (const panel of figure.querySelectorAll(".panel")) {
    const [heading, drawn] = [panel.querySelector("h4"), panel.querySelector("svg")];
    const [above, place] = [heading, drawn].map((node) => node.getBoundingClientRect());
    const copy = drawn.cloneNode(true);
    for (const [key, value] of Object.entries({ x: place.x - chart.x, y: top + place.y - chart.y, width: place.width, height: place.height })) copy.setAttribute(key, value);
    picture.append(written(heading.textContent, above.x - chart.x, top + above.y - chart.y + 14, 14, 650), copy);
  }
  picture.append(...foot.map((line, i) => written(line, 0, top + chart.height + LINE * (i + 1), 12)));
  const { color, backgroundColor } = getComputedStyle(document.body);
  const text = new XMLSerializer().serializeToString(picture);
  return { width, height, text: text.replaceAll("currentColor", color).replaceAll("var(--page)", backgroundColor) };
}

async function pngOf({ text, width, height }) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  // Twice as fine as on a screen, as the figures under plots/ are.
  const canvas = Object.assign(document.createElement("canvas"), { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

async function takePicture(figure, kind) {
  const picture = pictureOf(figure);
  const blob = kind === "png" ? await pngOf(picture) : new Blob([picture.text], { type: "image/svg+xml" });
  const url = URL.createObjectURL(blob);
  Object.assign(document.createElement("a"), { href: url, download: `${figure.id}.${kind}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

function makePictures() {
  for (const link of document.querySelectorAll("a[data-picture]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      takePicture(link.closest("figure"), link.dataset.picture);
    });
  }
}
