// Applies the chosen theme before the first paint. The modules run later.
try {
  const theme = JSON.parse(localStorage.getItem("bodega.theme"));
  if (theme) document.documentElement.dataset.theme = theme;
} catch {}
