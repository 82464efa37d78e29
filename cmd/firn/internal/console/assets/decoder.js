// The decoder: what is in an id.
import { html, useEffect, useState } from './vendor/preact-htm.js'
import { decode, layouts } from './api.js'
import { isNumber, moment, plausible, take } from './ids.js'
import { Encodings, nameOf } from './namespaces.js'
import { Bits, Copy, Facts, Problem } from './parts.js'
import { t, time } from './texts.js'

export function Decoder({ live, id, query, go }) {
  const [presets, setPresets] = useState([])
  const [answer, setAnswer] = useState(null)
  const [failure, setFailure] = useState(null)
  const text = (id ?? '').trim()
  const { namespace = '', layout = '' } = query
  useEffect(() => { layouts().then(setPresets) }, [])
  useEffect(() => {
    setAnswer(null)
    setFailure(null)
    if (!text) return
    const stop = new AbortController()
    const timer = setTimeout(async () => {
      try {
        setAnswer(await decode(text, { namespace, layout }, stop.signal))
      } catch (err) {
        if (!stop.signal.aborted) setFailure(err)
      }
    }, 150)
    return () => { clearTimeout(timer); stop.abort() }
  }, [text, namespace, layout])
  const set = (change) => go(`#/decoder/${encodeURIComponent(change.id ?? text)}?${new URLSearchParams({ ...query, ...change.query })}`)
  const choice = namespace ? 'n' + namespace : layout ? 'l' + layout : ''
  const choose = (value) => set({ query: { namespace: value[0] === 'n' ? value.slice(1) : '', layout: value[0] === 'l' ? value.slice(1) : '' } })
  const names = live.view?.namespaces.map((ns) => ns.namespace) ?? []
  return html`<h1>${t('decoder')}</h1>
    <section class="card"><div class="form">
      <label class="grow">${t('decodeLabel')} <input class="id" value=${text} placeholder=${t('decodePlaceholder')} spellcheck="false" autocapitalize="off"
        autocomplete="off" onInput=${(e) => set({ id: e.target.value })} /></label>
      <label>${t('decodeAs')} <select value=${choice} onChange=${(e) => choose(e.target.value)}>
        <option value="">${t('byForm')}</option>
        ${names.length > 0 && html`<optgroup label=${t('namespaces')}>${names.map((name) => html`<option key=${name} value=${'n' + name}>${name}</option>`)}</optgroup>`}
        <optgroup label=${t('layout')}>${presets.map((p) => html`<option key=${p.name} value=${'l' + p.name}>${p.name}</option>`)}</optgroup>
      </select></label></div>
    ${failure && html`<${Problem}>${failure.message}<//>`}
    ${answer && html`<${Contents} answer=${answer} presets=${presets} choose=${choose} known=${namespace || layout} />`}</section>`
}

function Contents({ answer, presets, choose, known }) {
  const numeric = isNumber(answer.id ?? '')
  const used = answer.layout && presets.find((p) => p.name === answer.layout || p.text === answer.layout)
  const likely = numeric && !known ? presets.filter((p) => plausible(p, answer.id)) : []
  return html`
    ${numeric && used && html`<${Bits} fields=${take(used, answer.id)} />`}
    <${Facts} of=${Object.entries(answer).map(([field, value]) => [nameOf(field), field === 'time' || field === 'begins' ? time(value) : shown(field, value)])} />
    ${numeric && answer.layout && !known && html`<h2 class="minor">${t('plausible')}</h2>
      ${likely.length === 0 && html`<p class="hint">${t('noneplausible')}</p>`}
      <ul class="likely">${likely.map((p) => html`<li key=${p.name}><button type="button" class="plain" onClick=${() => choose('l' + p.name)}>${p.name}</button>
        <span>${time(moment(p, answer.id))}</span></li>`)}</ul>`}
    ${numeric && html`<h2 class="minor">${t('otherForms')}</h2><${Encodings} id=${answer.id} />`}`
}

const shown = (field, value) => {
  if (field === 'id') return html`<span class="id">${value}</span> <${Copy} text=${String(value)} />`
  return field === 'period' || field === 'note' ? t(value) : String(value)
}
