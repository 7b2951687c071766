// Stands in for d3-transition and d3-interpolate, which d3-zoom needs only for its animations; the view has its own.

import { selection } from "d3-selection";

selection.prototype.interrupt = function () {
  return this;
};

export const interrupt = () => {};
export const interpolateZoom = null;
