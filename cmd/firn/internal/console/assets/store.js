// The page of the store: what the server finds about it.
import { html } from './vendor/preact-htm.js'
import { examined } from './api.js'
import { Facts, Problem, useAnswer } from './parts.js'
import { duration, number, t, time } from './texts.js'

// every is the pause between two questions, in milliseconds. The server examines its store no more often.
const every = 10000

export function Store({ live }) {
  if (!live.view.admin) return html`<h1>${t('store')}</h1><p class="hint">${t('storeNoAdmin')}</p>`
  return html`<h1>${t('store')}</h1><${Examination} />`
}

const lamp = { good: 'good', bad: 'bad', doubtful: 'doubtful' }

function Examination() {
  const { answer, failure } = useAnswer(examined, every)
  if (!answer) return failure ? html`<${Problem}>${failure.message}<//>` : html`<p class="hint">${t('examining')}</p>`
  const { life } = answer
  const ago = (text) => `${time(text)} (${t('ago', duration((Date.parse(answer.at) - Date.parse(text)) / 1000))})`
  return html`${failure && html`<${Problem}>${failure.message}<//>`}
    <section class="card"><h2>${t('durability')}</h2>
      <p class="lamp ${lamp[answer.durability] ?? ''}">${t('durability_' + answer.durability)}</p>
      <${Facts} of=${[
        [t('life'), life ? life.name || t('lifeUnknown') : t('lifeUnseen')], [t('lifeSince'), life && ago(life.since)],
        [t('lifeEarlier'), life && (life.earlier ? t('lifeTimes', number(life.earlier)) : t('lifeNone'))],
        [t('poolsOpened'), answer.opened && ago(answer.opened)],
      ]} /><p class="hint">${t('lifeHint')}</p></section>
    <section class="card"><h2>${t('findings')}</h2>
      <ul class="findings">${answer.findings.map((f) => html`<li><span class="lamp ${lamp[f.verdict]}">${t('verdict_' + f.verdict)}</span>
        <b>${f.subject}</b><div>${f.says}${f.advice && html`<p class="hint">→ ${f.advice}</p>`}</div></li>`)}</ul>
      <p class="hint">${t('examinedAt', time(answer.at), number(answer.took_seconds * 1000))}</p></section>`
}
