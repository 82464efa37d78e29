// What the browser keeps: the token for this tab, language and theme for later visits. A browser may refuse to keep anything.
const of = (storage) => ({
  get(key) { try { return storage().getItem('firn.' + key) ?? '' } catch { return '' } },
  set(key, value) {
    try { value ? storage().setItem('firn.' + key, value) : storage().removeItem('firn.' + key) } catch { /* kept nowhere */ }
  },
})
export const tab = of(() => sessionStorage)
export const browser = of(() => localStorage)
