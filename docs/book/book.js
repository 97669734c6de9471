// Excerpts below what the search finds are fetched from the pages: a browser does not allow that for pages that are files.
if (location.protocol === "file:" && typeof DOCUMENTATION_OPTIONS !== "undefined") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
// A link to the kernel opens the fold that it is in.
function openFold() {
  const fold = document.getElementById(location.hash.slice(1));
  if (fold && fold.tagName === "DETAILS") fold.open = true;
}
addEventListener("hashchange", openFold);
addEventListener("DOMContentLoaded", openFold);
