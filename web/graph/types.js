// How each type of node looks: a family gives the colour, the place in the family the shape.

import { svg } from "../lib/dom.js";

/** The types of both services by family; a family's colour is the CSS variable `--kind-FAMILY`. */
const FAMILIES = {
  adversary: ["actor", "intrusion_set", "campaign", "person"],
  software: ["malware", "tool"],
  weakness: ["cve", "vulnerability", "cwe", "capec"],
  technique: ["attack_pattern", "attck", "tactic", "course_of_action"],
  network: ["domain", "ipv4", "ipv6", "cidr", "asn", "url", "email", "ioc"],
  host: ["file_name", "file_path", "registry_key", "md5", "sha1", "sha256", "sha512", "bitcoin"],
  context: ["organization", "location", "event", "activity", "temporal", "osint", "sigma_rule", "yara_rule"],
  note: ["note"],
};

const ROUND = "circle";

/** Corners of the shapes in a circle of radius 1, clockwise from the top, with y downwards. */
const SHAPES = {
  triangle: turned(3, 1.25),
  square: turned(4, 1.15, 45),
  diamond: turned(4, 1.25),
  hexagon: turned(6, 1.1, 30),
  pentagon: turned(5, 1.15),
  down: turned(3, 1.25, 180),
  star: star(5, 1.35, .6),
  cross: [[-.4, -1.1], [.4, -1.1], [.4, -.4], [1.1, -.4], [1.1, .4], [.4, .4], [.4, 1.1], [-.4, 1.1], [-.4, .4],
    [-1.1, .4], [-1.1, -.4], [-.4, -.4]],
  page: [[-.8, -1.1], [.35, -1.1], [.8, -.6], [.8, 1.1], [-.8, 1.1]],
};

/** Shapes in the order in which the members of a family get them. */
const ORDERS = {
  adversary: ["triangle", "star", "pentagon", "down"],
  software: ["hexagon", "square"],
  weakness: ["diamond", "down", "pentagon", "cross"],
  technique: ["square", "diamond", "pentagon", "cross"],
  network: [ROUND, "diamond", "hexagon", "square", "pentagon", "triangle", "star", "cross"],
  host: ["square", "pentagon", "cross", "diamond", "triangle", "hexagon", ROUND, "star"],
  context: ["pentagon", "down", "star", "diamond", ROUND, "square", "cross", "hexagon"],
  note: ["page"],
};

const NAMES = {
  attck: "ATT&CK", attack_pattern: "Attack pattern", asn: "AS number", bitcoin: "Bitcoin", capec: "CAPEC", cidr: "CIDR",
  course_of_action: "Mitigation", cve: "CVE", cwe: "CWE", ioc: "Indicator", ipv4: "IPv4", ipv6: "IPv6", md5: "MD5",
  osint: "OSINT", sha1: "SHA-1", sha256: "SHA-256", sha512: "SHA-512", sigma_rule: "Sigma rule", url: "URL",
  yara_rule: "YARA rule",
};

const looks = new Map(Object.entries(FAMILIES).flatMap(([family, types]) => types.map((type, place) =>
  [type, { family, shape: ORDERS[family][place] }])));

/** The look of a type. One that is not known gets a shape by its name, in the colour `other`. */
export function lookOf(type) {
  if (!looks.has(type)) {
    const shapes = [ROUND, ...Object.keys(SHAPES)].filter((shape) => shape !== "page");
    const sum = [...type].reduce((so, letter) => (so * 31 + letter.codePointAt(0)) % 9973, 7);
    looks.set(type, { family: "other", shape: shapes[sum % shapes.length] });
  }
  return looks.get(type);
}

/** The names of all families, as in `--kind-FAMILY`. */
export const families = [...Object.keys(FAMILIES), "other"];

/** A type as people read it. */
export function typeName(type) {
  const text = type.replaceAll("_", " ");
  return NAMES[type] ?? text.charAt(0).toUpperCase() + text.slice(1);
}

/** Adds a shape to the path of a canvas. */
export function trace(canvas, shape, x, y, radius) {
  if (shape === ROUND) {
    canvas.moveTo(x + radius, y);
    canvas.arc(x, y, radius, 0, 2 * Math.PI);
    return;
  }
  const corners = SHAPES[shape];
  canvas.moveTo(x + corners[0][0] * radius, y + corners[0][1] * radius);
  for (let at = 1; at < corners.length; at += 1) {
    canvas.lineTo(x + corners[at][0] * radius, y + corners[at][1] * radius);
  }
  canvas.closePath();
}

/** The shape of a type as a picture for texts and buttons. */
export function sign(type) {
  const { family, shape } = lookOf(type);
  const drawn = shape === ROUND
    ? svg("circle", { r: 1 })
    : svg("polygon", { points: SHAPES[shape].map((corner) => corner.join(" ")).join(",") });
  return svg("svg.sign", { class: `kind-${family}`, viewBox: "-1.4 -1.4 2.8 2.8", "aria-hidden": "true" }, drawn);
}

function turned(corners, radius, degrees = 0) {
  return Array.from({ length: corners }, (_, at) => point(radius, degrees + at * 360 / corners));
}

function star(points, outer, inner) {
  return Array.from({ length: 2 * points }, (_, at) => point(at % 2 === 0 ? outer : inner, at * 180 / points));
}

function point(radius, degrees) {
  const angle = degrees * Math.PI / 180;
  return [Number((radius * Math.sin(angle)).toFixed(3)), Number((-radius * Math.cos(angle)).toFixed(3))];
}
