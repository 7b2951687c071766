// What web/vendor/d3.js exports.

export { drag } from "d3-drag";
export { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
export { quadtree } from "d3-quadtree";
export { select } from "d3-selection";
export { zoom, zoomIdentity } from "d3-zoom";
