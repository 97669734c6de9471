// What the scripts of the pages of see have in common; what each has of its own follows it.
const $ = id => document.getElementById(id), NS = "http://www.w3.org/2000/svg";
const make = (name, attributes, parent) => { const e = document.createElementNS(NS, name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (parent) parent.append(e);
  return e; };
