// The frame of the page: connection, token, language, theme, and which page is shown.
import { html, render, Component, useState } from './vendor/preact-htm.js'
import { hasToken, setToken } from './api.js'
import { browser } from './kept.js'
import { Live } from './live.js'
import { Problem } from './parts.js'
import { clockTime, offset, switchLanguage, t } from './texts.js'
import { Namespaces } from './namespaces.js'
import { Pools } from './pools.js'
import { Decoder } from './decoder.js'
import { Designer } from './designer.js'
import { Store } from './store.js'

const pages = ['namespaces', 'pools', 'store', 'decoder', 'designer']

// route reads the address: #/PAGE/CHOSEN?QUERY.
function route() {
  const [path, query = ''] = location.hash.slice(1).split(/\?(.*)/s)
  const [, page, chosen = ''] = path.split('/')
  let name = chosen
  try { name = decodeURIComponent(chosen) } catch { /* typed by hand */ }
  return { page: pages.includes(page) ? page : pages[0], chosen: name, query: Object.fromEntries(new URLSearchParams(query)) }
}

// go changes the address without a step of the history for each key.
function go(hash) {
  history.replaceState(null, '', hash)
  app.setState({ at: route() })
}

let app

class App extends Component {
  constructor() {
    super()
    app = this
    this.state = { at: route(), turn: 0 }
    this.connect()
  }

  // connect begins a new stream. One that only goes on keeps what the page has.
  connect(was, only = was?.only) {
    this.live?.stop()
    this.live = new Live(() => this.seen(), was, only)
    this.live.run()
  }

  // seen shows a new state. A page has at most 100 namespaces, so one that is chosen and not among them is asked for alone.
  seen() {
    const { live, state: { at } } = this
    const chosen = at.page === 'namespaces' ? at.chosen : ''
    const missing = chosen && live.view?.more > 0 && !live.view.namespaces.some((ns) => ns.namespace === chosen)
    if (live.status === 'live' && (missing ? live.only !== chosen : live.only && live.only !== chosen)) this.connect(live, missing ? chosen : '')
    this.setState(({ turn }) => ({ turn: turn + 1 }))
  }

  // A browser has few connections for a server, for all its tabs and kept pages together. So one that is not seen has none.
  componentDidMount() {
    addEventListener('hashchange', () => this.setState({ at: route() }, () => this.seen()))
    let timer
    const leave = () => { this.left = true; this.live.stop() }
    const back = () => {
      clearTimeout(timer)
      if (this.left) this.connect(this.live)
      this.left = false
    }
    addEventListener('pagehide', leave)
    addEventListener('pageshow', back)
    document.addEventListener('visibilitychange', () => {
      if (document.visibilityState === 'visible') back()
      else timer = setTimeout(leave, 5000)
    })
  }

  useToken(text) {
    setToken(text)
    this.connect()
    this.setState({ turn: 0 })
  }

  switchTheme() {
    const dark = (document.documentElement.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark'
    document.documentElement.dataset.theme = dark ? 'light' : 'dark'
    browser.set('theme', document.documentElement.dataset.theme)
    document.dispatchEvent(new Event('firn-theme'))
  }

  render(_, { at }) {
    const { live } = this
    return html`<header class="top">
        <a class="brand" href="#/namespaces"><svg viewBox="0 0 16 16" aria-hidden="true"><path d="M8 1v14M2 4.5l12 7M14 4.5l-12 7" /></svg>Firn</a>
        <nav aria-label=${t('pages')}>${pages.map((page) => html`<a key=${page} href=${'#/' + page} aria-current=${page === at.page ? 'page' : undefined}>${t(page)}</a>`)}</nav>
        <div class="tools"><${Status} live=${live} />
          <button type="button" onClick=${() => { switchLanguage(); this.setState({ turn: 0 }) }} title=${t('languageTitle')}>${t('language')}</button>
          <button type="button" onClick=${this.switchTheme} title=${t('theme')} aria-label=${t('theme')}>◐</button></div>
      </header>
      <main>
        ${live.status === 'lost' && html`<${Problem}>${live.failure?.status ? live.failure.message : t('lost')} ${live.view && t('lostSince', clockTime(new Date(live.view.at)))}<//>`}
        ${live.view && !live.view.ready && html`<${Problem}>${live.view.why}<//>`}
        ${(live.status === 'refused' || hasToken() || live.view?.caller === 'anonymous') && html`<${Token} live=${live} use=${(text) => this.useToken(text)} />`}
        ${this.page(at)}
      </main>`
  }

  page({ page, chosen, query }) {
    const { live } = this
    if (page === 'decoder') return html`<${Decoder} live=${live} id=${chosen} query=${query} go=${go} />`
    if (page === 'designer') return html`<${Designer} query=${query} go=${go} />`
    if (!live.view || live.status === 'refused') return live.status === 'connecting' && html`<p class="hint">${t('connecting')}</p>`
    if (page === 'store') return html`<${Store} live=${live} />`
    return page === 'pools' ? html`<${Pools} live=${live} chosen=${chosen} />` : html`<${Namespaces} live=${live} chosen=${chosen} />`
  }
}

function Status({ live }) {
  if (live.status === 'refused') return null // of the server's readiness nothing is known
  if (live.status !== 'live') return html`<span class="lamp ${live.status === 'connecting' ? '' : 'bad'}" role="status">${t(live.status === 'connecting' ? 'connecting' : 'notReady')}</span>`
  const { view } = live
  const off = (view.here - Date.parse(view.at)) / 1000
  return html`<span class="lamp ${view.ready ? 'good' : 'bad'}" role="status">${t(view.ready ? 'ready' : 'notReady')}</span>
    <span class="clock wide" title=${t('clockOff', offset(off))}>${clockTime(new Date(view.at))}</span>`
}

function Token({ live, use }) {
  const [text, setText] = useState('')
  const refused = live.status === 'refused'
  if (!refused && hasToken()) return html`<p class="token hint">${t('token')}: ${live.view?.caller ?? '…'} <button type="button" onClick=${() => use('')}>${t('tokenForget')}</button></p>`
  const submit = (event) => {
    event.preventDefault()
    setText('')
    use(text)
  }
  return html`<section class="card token"><h2>${t(!refused ? 'tokenMore' : hasToken() ? 'tokenRefused' : 'tokenNeeded')}</h2>
    ${refused && hasToken() && html`<${Problem}>${live.failure.message}<//>`}
    <form class="form" onSubmit=${submit}><label class="grow">${t('token')} <input type="password" autocomplete="off" required placeholder=${t('tokenPlaceholder')}
      value=${text} onInput=${(e) => setText(e.target.value)} /></label><button class="main">${t('tokenUse')}</button>
      ${hasToken() && html`<button type="button" onClick=${() => use('')}>${t('tokenForget')}</button>`}</form>
    <p class="hint">${t('tokenKept')}</p></section>`
}

render(html`<${App} />`, document.getElementById('app'))
