// All texts of the page, in both languages, and in English for one where that differs. {0} is the first argument.
import { browser } from './kept.js'

const texts = {
  namespaces: ['Namespaces', 'namespace'],
  pools: ['Pools', '机器号池'],
  store: ['Store', '存储'],
  decoder: ['Decoder', '解析 ID'],
  designer: ['Layouts', '位分配'],
  designerTitle: ['Layout designer', '位分配设计'],
  pages: ['Pages', '页面'],
  language: ['中文', 'English'],
  languageTitle: ['切换到中文', 'Switch to English'],
  theme: ['Switch between light and dark', '切换浅色 / 深色'],
  token: ['Token', 'token'],
  tokenPlaceholder: ['Paste a token', '粘贴 token'],
  tokenUse: ['Use', '使用'],
  tokenForget: ['Forget the token', '清除 token'],
  tokenKept: ['It stays in this tab only.', '仅保存在当前标签页。'],
  tokenNeeded: ['This server asks for a token.', '本服务需要 token。'],
  tokenMore: ['You see what is open to all. A token shows more.', '当前只显示公开内容，使用 token 可以查看更多。'],
  tokenRefused: ['The server refused the token.', '服务拒绝了这个 token。'],
  lost: ['No connection to the server. Trying again…', '与服务的连接断开，正在重连…'],
  lostSince: ['What you see is from {0}.', '当前显示的是 {0} 的数据。'],
  connecting: ['Connecting…', '正在连接…'],
  ready: ['ready', '就绪'],
  notReady: ['not ready', '未就绪'],
  clockOff: ['this browser {0}', '浏览器时钟 {0}'],
  noNamespaces: ['There is no namespace yet.', '还没有 namespace。'],
  firstUse: ['A namespace is made with the first id: type a name.', '第一次取号时自动创建：输入一个名字。'],
  none: ['Nothing that this caller may see.', '当前调用方没有可以查看的内容。'],
  more: ['{0} more namespaces are not shown: one page shows 100.', '还有 {0} 个 namespace 没有显示：一页最多 100 个。', '1 more namespace is not shown: one page shows 100.'],
  find: ['Show', '查看'],
  all: ['All namespaces', '全部 namespace'],
  name: ['Name', '名字'],
  kind: ['Kind', '类型'],
  rate: ['Ids a second', '每秒 ID 数'],
  total: ['Ids since start', '启动以来的 ID 数'],
  errors: ['Errors', '错误'],
  state: ['State', '状态'],
  works: ['works', '正常'],
  broken: ['cannot issue', '无法发号'],
  rateChart: ['Ids a second since this page was opened', '本页打开以来的每秒 ID 数'],
  collecting: ['The chart begins in a few seconds.', '图表将在几秒后出现。'],
  noCounts: ['Rates and counts need a token with admin: true.', '查看速率和计数需要 admin: true 的 token。'],
  byCode: ['Requests by answer', '各结果的请求数'],
  code: ['Answer', '结果'],
  requests: ['Requests', '请求数'],
  refused: ['Requests that came to no namespace', '没有进入任何 namespace 的请求'],
  settings: ['Settings and state', '配置与状态'],
  worker: ['Worker', '机器号'],
  datacenter: ['Datacenter', 'datacenter'],
  sequence: ['Sequence', '序列号'],
  time: ['Time', '时间'],
  tick: ['Tick', '时间刻度'],
  layout: ['Layout', '位分配'],
  pool: ['Pool', '机器号池'],
  clockKind: ['Clock', '时钟类型'],
  fence: ['Fence', '围栏'],
  fenceLeft: ['Seconds until the fence', '距围栏（秒）'],
  renewals: ['Renewals', '续租次数'],
  losses: ['Workers lost', '机器号丢失次数'],
  left: ['Ids in memory', '内存里的 ID 数'],
  lasts: ['They last for', '预计可用'],
  step: ['Step', '步长'],
  ranges: ['Ranges fetched ahead', '已预取的号段数'],
  fetches: ['Fetches', '取号段次数'],
  waits: ['Waits for a range', '等号段次数'],
  last: ['Last id', '最后一个 ID'],
  additions: ['Additions in the store', '存储累加次数'],
  issuedSequence: ['Ids made of them', '由此发出的 ID 数'],
  batch: ['Calls an addition', '每次累加合并的请求数'],
  template: ['Template', '模板'],
  prefix: ['Prefix', '前缀'],
  veil: ['Veil', '混淆（veil）'],
  seconds: ['{0} s', '{0} 秒'],
  minutes: ['{0} min', '{0} 分钟'],
  hours: ['{0} h', '{0} 小时'],
  days: ['{0} days', '{0} 天'],
  forever: ['a long time', '很久'],
  make: ['Make ids', '取号'],
  makeHint: ['They are issued as for any client.', '和其他客户端取号完全一样。'],
  count: ['How many', '数量'],
  copy: ['Copy', '复制'],
  copied: ['Copied', '已复制'],
  copyFailed: ['Not copied', '复制失败'],
  decodeIt: ['Decode', '解析'],
  close: ['Close', '关闭'],
  noPools: ['No namespace here uses a pool: only snowflake, serial and the like do.', '没有使用机器号池的 namespace：只有 snowflake、serial 等类型才用。'],
  slotsOf: ['Slots of pool {0}', '池 {0} 的槽位'],
  held: ['held', '持有中'],
  ahead: ['clock ahead', '时钟超前'],
  returned: ['given back', '已归还'],
  released: ['released by an operator', '已被运维收回'],
  expired: ['expired', '已过期'],
  never: ['never used', '从未使用'],
  own: ['this server', '本服务'],
  slot: ['Worker {0}', '机器号 {0}'],
  holder: ['Holder', '持有者'],
  process: ['Process', '进程'],
  since: ['Held since', '开始持有'],
  seen: ['Last written', '最近写入'],
  until: ['Fence at', '围栏时间'],
  untilLeft: ['Left', '剩余'],
  owner: ['Owner', '持有者标识'],
  storeClock: ['Clock of the store', '存储的时钟'],
  storeOff: ['{0} from the server’s', '与服务端偏差 {0}'],
  opened: ['The pool is open: workers are granted.', '池已开放：可以占用机器号。'],
  closed: ['The pool is not open yet: newcomers wait for holders of an earlier life.', '池还没有开放：宽限期内，新进程等以前世代的持有者把槽位写回去。'],
  ofWorkers: ['{0} of {1} workers held', '{1} 个机器号，{0} 个持有中'],
  showing: ['The first {0} of {1} workers, and all that were used', '显示前 {0} 个（共 {1} 个）和所有用过的机器号'],
  clickSlot: ['Choose a slot to see its holder.', '点击槽位查看持有者。'],
  neverUsed: ['No process has used this worker yet.', '还没有进程用过这个机器号。'],
  decodeLabel: ['Id, in any form', 'ID（任意格式）'],
  decodePlaceholder: ['249682737550880157, 06XWHAVS06C5J, a UUID, ord_…', '249682737550880157、06XWHAVS06C5J、UUID、ord_…'],
  decodeAs: ['Made by', '来源'],
  byForm: ['unknown: go by its form', '未知：按格式判断'],
  bits: ['Bits', '位'],
  bitCount: ['{0} bits', '{0} 位', '1 bit'],
  plausible: ['Layouts that make its time plausible', '时间说得通的位分配'],
  noneplausible: ['No known layout makes its time plausible. It may be of a counter, veiled, or of a layout of its own.', '没有一种已知的位分配，时间说得通：可能是计数器发的 ID、混淆（veil）过的 ID，或者用了自定义的位分配。'],
  otherForms: ['The same id in other encodings', '同一 ID 的其他编码'],
  borders: ['Drag the borders, or focus one and use the arrow keys.', '拖动边界，或选中后用方向键调整。'],
  border: ['Border between {0} and {1}', '{0} 与 {1} 的边界'],
  unit: ['Length of a tick', '时间刻度长度'],
  epoch: ['Epoch', '起始时间'],
  startFrom: ['Start from', '从预设开始'],
  lastMoment: ['Ends', '可用至'],
  machines: ['Workers', '机器号数'],
  perSecond: ['Ids a second and worker', '每个机器号每秒 ID 数'],
  perSecondAll: ['Ids a second in all', '合计每秒 ID 数'],
  js: ['JavaScript number', 'JavaScript 数值'],
  jsSafe: ['exact', '精确'],
  jsUnsafe: ['not exact: send as text', '不精确：请用字符串传输'],
  free: ['{0} of 63 bits are free', '63 位中还有 {0} 位没用', '1 of 63 bits is free'],
  flag: ['Flag', '命令行参数'],
  preset: ['Preset', '预设'],
  id: ['Id', 'ID'],
  note: ['Note', '说明'],
  version: ['Version', '版本'],
  variant: ['Variant', '变体'],
  check: ['Check digits', '校验位'],
  unique: ['Unique', '唯一值'],
  counter: ['Counter', '计数'],
  machine: ['Machine', '机器'],
  period: ['Period', '周期'],
  begins: ['Begins', '周期起点'],
  day: ['day', '天'],
  month: ['month', '月'],
  year: ['year', '年'],
  number: ['Number', '计数值'],
  veiled: ['Veiled', '混淆后的 ID'],
  'a counter made this id: it has neither a time nor a worker in it': [, '计数器发的 ID，里面没有时间，也没有机器号'],
  'the time is after the year 9999': [, '时间在 9999 年之后'],
  release: ['Release this worker …', '收回这个机器号……'],
  releaseAsk: ['Release worker {0} from {1} (process {2})? If the holder still runs, it continues with another worker at its next check of the store. The fence stays, so no id is issued twice. The worker is granted again after {3}, or 20 s later if its holder did not give it back. The audit log records it.', '确定从 {1}（进程 {2}）收回机器号 {0}？持有者如果还在运行，下次查看槽位时会换一个机器号。围栏不动，所以 ID 不会重复。{3} 之后这个机器号可以重新分配；持有者没有归还的，再等 20 秒。此操作会写入审计日志。'],
  releaseOwn: ['It is the worker of this server.', '这是本服务持有的机器号。'],
  releaseDo: ['Release worker {0}', '收回机器号 {0}'],
  releaseDone: ['It was released. It is free at {0}, or 20 s later if its holder still runs.', '已收回。{0} 之后可以重新分配；持有者还在运行的，再等 20 秒。'],
  cancel: ['Cancel', '取消'],
  lately: ['Joined and left in the last hour', '最近一小时加入和离开的进程'],
  latelyNone: ['No process joined or left.', '没有进程加入或离开。'],
  joined: ['joined', '加入'],
  steps: ['Steps since you opened the page', '本页打开以来的步长'],
  storeNoAdmin: ['The state of the store needs a token with admin: true.', '查看存储状态需要 admin: true 的 token。'],
  examining: ['The store is being examined …', '正在检查存储……'],
  examinedAt: ['Examined at {0}, in {1} ms. The same as firn doctor finds, without its write; at most 10 s old.', '{0} 检查，耗时 {1} 毫秒。检查项与 firn doctor 相同，只是不试写；结果最多缓存 10 秒。'],
  durability: ['Durability', '持久性'],
  durability_good: ['The store keeps what it confirms, in every failure that it is configured to survive.', '只要是存储配置成能承受的故障，确认过的写入就不会丢。'],
  durability_doubtful: ['The store keeps what it confirms only under the conditions named below.', '满足下列条件，存储确认过的写入才不会丢。'],
  durability_bad: ['The store can lose what it confirmed, or cannot be written. Then ids can repeat: do what is advised below.', '存储可能丢失已经确认的写入，或者写不进去，ID 可能因此重复：请按下面的建议处理。'],
  durability_unknown: ['The store does not say whether it keeps what it confirms.', '存储没有说明确认过的写入会不会丢。'],
  life: ['Life', '世代（life）'],
  lifeUnknown: ['the store cannot tell', '存储给不出世代'],
  lifeUnseen: ['no write was confirmed yet', '还没有确认过的写入'],
  lifeSince: ['Seen since', '本服务首次看到'],
  lifeEarlier: ['Changes', '变化次数'],
  lifeTimes: ['{0} since the server started', '启动以来 {0} 次'],
  lifeNone: ['none since the server started', '启动以来没有变化'],
  poolsOpened: ['Pools opened', '池上次开放'],
  lifeHint: ['A store begins another life when it may have forgotten writes: after a restart, a failover or a restored copy. Newcomers to a pool then wait until all holders are known again.', '重启、故障切换、重建、恢复之后，存储可能丢了写入，就开始新的世代。新进程先等一个宽限期，让还在运行的持有者把槽位写回去，再占用机器号。'],
  ago: ['{0} ago', '{0}前'],
  findings: ['Findings', '检查结果'],
  verdict_good: ['good', '正常'],
  verdict_doubtful: ['doubtful', '存疑'],
  verdict_bad: ['bad', '有问题'],
  noAdmin: ['Pools need a token with admin: true.', '查看机器号池需要 admin: true 的 token。'],
}

let at = languageOf(browser.get('language') || navigator.language)
function languageOf(tag) { return /^zh/i.test(tag) ? 1 : 0 }

export const language = () => (at ? 'zh-CN' : 'en')
export function switchLanguage() {
  at = 1 - at
  browser.set('language', language())
  document.documentElement.lang = language()
}
document.documentElement.lang = language()

export function t(key, ...args) {
  const text = (at === 0 && args[0] === 1 && texts[key]?.[2]) || (texts[key]?.[at] ?? key)
  return args.reduce((out, arg, i) => out.replaceAll(`{${i}}`, arg), text)
}
export const has = (key) => Object.hasOwn(texts, key)

const formats = new Map() // one takes longer to make than thousands of numbers
export function number(n, digits = 0) {
  const key = language() + digits
  if (!formats.has(key)) formats.set(key, new Intl.NumberFormat(language(), { maximumFractionDigits: digits }))
  return formats.get(key).format(n)
}
export const compact = (n) => new Intl.NumberFormat(language(), { notation: 'compact', maximumFractionDigits: 1 }).format(n)
export const time = (text) => {
  const at = new Date(text)
  return isNaN(at) ? String(text) : at.toISOString().replace('T', ' ')
}
export const clockTime = (at) => at.toISOString().slice(11, 19) + ' UTC'

export function duration(seconds) {
  if (!isFinite(seconds) || seconds > 86400 * 3650) return t('forever')
  const s = Math.abs(seconds)
  const sign = seconds < 0 ? '−' : ''
  if (s < 120) return sign + t('seconds', number(s, s < 10 ? 1 : 0))
  if (s < 7200) return sign + t('minutes', number(s / 60, 0))
  if (s < 172800) return sign + t('hours', number(s / 3600, 1))
  return sign + t('days', number(s / 86400, 0))
}
export function offset(seconds) {
  const sign = seconds < 0 ? '−' : '+'
  const s = Math.abs(seconds)
  return sign + (s < 1 ? number(s * 1000, 0) + ' ms' : number(s, 1) + ' s')
}
