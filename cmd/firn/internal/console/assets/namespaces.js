// The page of namespaces: a table of all, and one in detail.
import { html, useState } from './vendor/preact-htm.js'
import { makeIDs } from './api.js'
import { encode, isNumber } from './ids.js'
import { Chart, Copy, Facts, Problem, Spark } from './parts.js'
import { clockTime, duration, has, number, t, time } from './texts.js'

const link = (name) => '#/namespaces/' + encodeURIComponent(name)
const failed = (counts) => Object.entries(counts ?? {}).reduce((sum, [code, n]) => sum + (code === 'ok' ? 0 : n), 0)

export function Namespaces({ live, chosen }) {
  const { view } = live
  const list = view.namespaces
  const one = list.find((ns) => ns.namespace === chosen)
  return html`<h1>${t('namespaces')}</h1>
    ${!view.counts && html`<p class="hint">${t('noCounts')}</p>`}
    ${list.length === 0 && html`<p class="hint">${view.dynamic ? t('noNamespaces') : t('none')}</p>`}
    ${list.length > 0 && html`<div class="scroll"><table>
      <thead><tr><th>${t('name')}</th><th class="wide">${t('kind')}</th>
        ${view.counts && html`<th class="n">${t('rate')}</th><td class="wide"></td><th class="n wide">${t('total')}</th><th class="n">${t('errors')}</th>`}
        <th>${t('state')}</th></tr></thead>
      <tbody>${list.map((ns) => html`<tr key=${ns.namespace} class=${ns === one ? 'chosen' : ''}>
        <td><a href=${link(ns.namespace)} aria-current=${ns === one ? 'true' : undefined}>${ns.namespace}</a></td><td class="wide">${ns.kind}</td>
        ${view.counts && html`<td class="n">${ns.rate === null ? '–' : number(ns.rate, ns.rate < 10 ? 1 : 0)}</td>
          <td class="wide"><${Spark} rates=${live.rates.get(ns.namespace)?.rate} /></td>
          <td class="n wide">${number(ns.issued)}</td><td class="n ${failed(ns.counts) ? 'bad' : ''}">${number(failed(ns.counts))}</td>`}
        <td><span class="lamp ${ns.able ? 'good' : 'bad'}">${t(ns.able ? 'works' : 'broken')}</span></td></tr>`)}</tbody></table></div>`}
    ${(view.more > 0 || live.only) && html`<${Find} more=${view.more} />`}
    ${view.dynamic && !one && html`<${FirstUse} />`}
    ${one && html`<${Detail} key=${one.namespace} ns=${one} live=${live} />`}
    ${!one && view.refused && Object.keys(view.refused).length > 0 && html`<section class="card"><h2>${t('refused')}</h2><${Codes} counts=${view.refused} /></section>`}`
}

// Find leads to a namespace that is not in the table.
function Find({ more }) {
  const [name, setName] = useState('')
  return html`<form class="form" onSubmit=${(e) => { e.preventDefault(); location.hash = link(name) }}>
    <p class="hint">${more > 0 ? t('more', more) : html`<a href="#/namespaces">${t('all')}</a>`}</p>
    <label>${t('name')} <input value=${name} required onInput=${(e) => setName(e.target.value)} spellcheck="false" autocapitalize="off" /></label><button>${t('find')}</button></form>`
}

function FirstUse() {
  const [name, setName] = useState('')
  return html`<section class="card"><h2>${t('make')}</h2><p class="hint">${t('firstUse')}</p>
    <label>${t('name')} <input value=${name} onInput=${(e) => setName(e.target.value)} maxlength="64" spellcheck="false" autocapitalize="off" /></label>
    ${name && html`<${Make} key=${name} name=${name} />`}</section>`
}

function Detail({ ns, live }) {
  const rates = live.rates.get(ns.namespace)
  return html`<section class="card" aria-label=${ns.namespace}><header class="row"><h2>${ns.namespace}</h2><a class="close" href="#/namespaces">${t('close')}</a></header>
    ${ns.error && html`<${Problem}>${ns.error}<//>`}
    ${live.view.counts && (rates?.at.length > 1 ? html`<${Chart} data=${rates} title=${t('rateChart')} />` : html`<p class="hint">${t('collecting')}</p>`)}
    <div class="columns">
      <div><h3>${t('settings')}</h3><${Facts} of=${factsOf(ns, live.steps.get(ns.namespace))} /></div>
      ${ns.counts && html`<div><h3>${t('byCode')}</h3><${Codes} counts=${ns.counts} /></div>`}
      <div><h3>${t('make')}</h3><${Make} name=${ns.namespace} /></div>
    </div></section>`
}

const factsOf = (ns, steps) => [
  [t('kind'), ns.kind], [t('pool'), ns.pool && html`<a href=${'#/pools/' + encodeURIComponent(ns.pool)}>${ns.pool}</a>`],
  [t('layout'), ns.layout], [t('clockKind'), ns.clock], [t('worker'), ns.worker],
  [t('fence'), ns.until && time(ns.until)], [t('fenceLeft'), ns.fence_seconds === undefined ? undefined : number(ns.fence_seconds)],
  [t('renewals'), ns.renewals], [t('losses'), ns.losses],
  ...(ns.segment ? [
    [t('left'), number(BigInt(ns.segment.left))], [t('lasts'), duration(ns.segment.lasts_seconds)], [t('step'), number(ns.segment.step)],
    [t('steps'), steps?.map(({ at, step }) => html`<span key=${at} class="step">${clockTime(new Date(at))}: ${number(step)}</span>`)],
    [t('ranges'), ns.segment.ranges], [t('fetches'), number(ns.segment.fetches)], [t('waits'), number(ns.segment.waits)],
  ] : []),
  ...(ns.sequence ? [
    [t('last'), String(ns.sequence.last)], [t('additions'), number(ns.sequence.additions)], [t('issuedSequence'), number(ns.sequence.issued)],
    [t('batch'), number(ns.sequence.calls_per_addition, 1)],
  ] : []),
  [t('template'), ns.template], [t('prefix'), ns.prefix], [t('veil'), ns.veil],
]

const Codes = ({ counts }) => html`<table class="codes"><thead><tr><th>${t('code')}</th><th class="n">${t('requests')}</th></tr></thead>
  <tbody>${Object.entries(counts).sort(([, a], [, b]) => b - a).map(([code, n]) => html`<tr key=${code}>
    <td class=${code === 'ok' ? '' : 'bad'}>${code}</td><td class="n">${number(n)}</td></tr>`)}</tbody></table>`

// Make asks for ids, and shows each in all encodings.
function Make({ name }) {
  const [count, setCount] = useState(1)
  const [ids, setIDs] = useState([])
  const [failure, setFailure] = useState(null)
  const [busy, setBusy] = useState(false)
  const [chosen, choose] = useState(0)
  const submit = async (event) => {
    event.preventDefault()
    setBusy(true)
    try {
      const answer = await makeIDs(name, count)
      setIDs(answer.ids)
      setFailure(null)
      choose(0)
    } catch (err) {
      setFailure(err)
    }
    setBusy(false)
  }
  const id = ids[chosen]
  return html`<form class="make" onSubmit=${submit}>
      <label>${t('count')} <input type="number" min="1" max="100" value=${count} onInput=${(e) => setCount(e.target.value)} /></label>
      <button class="main" disabled=${busy}>${t('make')}</button></form>
    <p class="hint">${t('makeHint')}</p>
    ${failure && html`<${Problem}>${failure.message}<//>`}
    ${ids.length > 1 && html`<ol class="ids">${ids.map((one, i) => html`<li key=${one}>
      <button type="button" class="plain" aria-pressed=${i === chosen} onClick=${() => choose(i)}>${one}</button></li>`)}</ol>`}
    ${id && html`<div class="made"><p><output class="id">${id}</output> <${Copy} text=${id} />
      <a class="button" href=${`#/decoder/${encodeURIComponent(id)}?${new URLSearchParams({ namespace: name })}`}>${t('decodeIt')}</a></p>
      ${isNumber(id) && html`<${Encodings} id=${id} />`}</div>`}`
}

export const Encodings = ({ id }) => html`<table class="encodings"><tbody>
  ${encode(id).map(([name, text]) => html`<tr key=${name}><th scope="row">${name}</th><td><code>${text}</code></td><td><${Copy} text=${text} label=${name} /></td></tr>`)}
</tbody></table>`

export const nameOf = (field) => (has(field) ? t(field) : field)
