// Runs before the first paint, so that the page does not flash in the other theme.
(() => {
  try {
    const theme = localStorage.getItem('firn.theme')
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
  } catch { /* the browser keeps nothing */ }
})()
