// Tables that sort and figures that zoom; without scripts both are there all the same.
const code = document.getElementById("datatables").textContent;
const address = URL.createObjectURL(new Blob([code], {type: "text/javascript"}));
const {default: DataTable} = await import(address);
for (const table of document.querySelectorAll("table.sortable")) {
  new DataTable(table, {
    paging: false, searching: false, info: false, order: [], autoWidth: false,
  });
}

const dialog = document.querySelector("dialog");
const picture = dialog.querySelector("img");
const zoom = d3.zoom().scaleExtent([1, 30]).on("zoom", () => {
  const {x, y, k} = d3.event.transform;
  picture.style.transform = `translate(${x}px, ${y}px) scale(${k})`;
});
const stage = d3.select(dialog.querySelector(".stage")).call(zoom);
for (const button of document.querySelectorAll("figure button")) {
  button.addEventListener("click", () => {
    const small = button.querySelector("img");
    picture.src = small.src;
    picture.alt = small.alt;
    dialog.showModal();
    stage.call(zoom.transform, d3.zoomIdentity);
  });
}
document.documentElement.dataset.ready = "yes";
