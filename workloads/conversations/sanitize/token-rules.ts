/** Keys and tokens that can be told by their form alone. */
import { type Rule, type Span, spansOf } from './rule.ts'

/** A prefix, then a tail. Nothing is required behind the tail, so that no search runs far and then fails. */
const TOKENS: readonly (readonly [id: string, replacement: string, pattern: RegExp])[] = [
  ['aws-access-key', '[AWS_KEY]', /(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[A-Z2-7\d]{16}/g],
  ['github', '[GITHUB_TOKEN]', /gh[pousr]_[A-Za-z\d]{30,}|github_pat_[A-Za-z\d_]{30,}/g],
  ['gitlab', '[GITLAB_TOKEN]', /gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt)-[\w.-]{18,}/g],
  ['slack', '[SLACK_TOKEN]', /xox[abeoprs]-[A-Za-z\d-]{10,}|xapp-\d-[A-Za-z\d-]{10,}|xoxe\.xox[bp]-[A-Za-z\d-]{10,}/g],
  ['slack-webhook', '[SLACK_WEBHOOK]', /hooks\.slack\.com\/(?:services|workflows|triggers)\/[A-Za-z\d/+_-]{10,}/g],
  ['stripe', '[STRIPE_KEY]', /(?:[rs]k|pk)_(?:live|test)_[A-Za-z\d]{10,}|whsec_[A-Za-z\d+/=]{20,}/g],
  ['anthropic', '[ANTHROPIC_KEY]', /sk-ant-[\w-]{16,}/g],
  [
    'openai',
    '[OPENAI_KEY]',
    /(?<![A-Za-z\d])sk-(?!ant-)(?:(?:proj|svcacct|admin|or-v1|None)-[\w-]{16,}|(?=[A-Za-z]{0,40}\d)[A-Za-z\d]{20,})/g,
  ],
  ['google', '[GOOGLE_KEY]', /AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}|(?<!\d)1\/\/0[\w-]{30,}/g],
  ['npm', '[NPM_TOKEN]', /npm_[A-Za-z\d]{36,}/g],
  ['pypi', '[PYPI_TOKEN]', /pypi-AgE[\w-]{30,}/g],
  ['telegram', '[TELEGRAM_TOKEN]', /(?<!\d)\d{8,10}:AA[\w-]{33}/g],
  ['sendgrid', '[SENDGRID_KEY]', /SG\.[\w-]{16,32}\.[\w-]{32,64}/g],
  ['twilio', '[TWILIO_KEY]', /(?<![A-Za-z\d])(?:SK|AC)[\da-f]{32}(?![A-Za-z\d])/g],
  ['hugging-face', '[HUGGING_FACE_TOKEN]', /(?<![A-Za-z\d])(?:hf|api_org)_[A-Za-z\d]{30,}/g],
  ['digitalocean', '[DIGITALOCEAN_TOKEN]', /do[opr]_v1_[\da-f]{32,}/g],
  ['shopify', '[SHOPIFY_TOKEN]', /shp(?:at|ca|pa|ss)_[\da-fA-F]{32}/g],
  ['vault', '[VAULT_TOKEN]', /(?<![A-Za-z\d])hv[sbr]\.[\w-]{20,}/g],
  [
    'service-token',
    '[TOKEN]',
    /dckr_pat_[\w-]{20,}|HRKU-[\w-]{30,}|sq[apu]_[\da-f]{40}|discord(?:app)?\.com\/api\/webhooks\/\d{8,20}\/[\w-]{40,}|(?<![\w-])[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}|lin_api_[A-Za-z\d]{30,}|figd_[\w-]{30,}|sntry[su]_[\w+/=-]{30,}|rubygems_[\da-f]{40,}|ATATT3[\w=-]{20,}|NRAK-[A-Z\d]{20,}|AGE-SECRET-KEY-1[A-Z\d]{50,}|(?<![A-Za-z\d])(?:gsk|xai|r8|pplx|dapi|key)[_-]?(?=[A-Za-z]{0,30}\d)(?=[a-z\d]{0,30}[A-Z]|[\da-f]{32})[A-Za-z\d]{32,}/g,
  ],
  ['jwt', '[JWT]', /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*){0,3}/g],
]

/** The prefixes above: ordinary text has none of them. */
const TOKEN_HINT =
  /A(?:KIA|SIA|ROA|IDA|BIA|CCA|TATT3|GE-SECRET-KEY|Iza)|gh[pousr]_|github_pat_|gl[a-z]{2,5}-|xox|xapp-|hooks\.slack|[rsp]k_(?:live|test)|whsec_|sk-|ya29\.|GOCSPX|1\/\/0|npm_|pypi-|\d:AA|SG\.|(?:SK|AC)[\da-f]{8}|hf_|api_org_|do[opr]_v1|shp|hv[sbr]\.|dckr_|lin_api|figd_|sntry|rubygems_|NRAK-|HRKU-|sq[apu]_|webhooks\/\d|[MNO][\w-]{23,27}\.|gsk|xai|r8|pplx|dapi|key[_-]?[A-Za-z\d]{8}|eyJ/

const AWS_SECRET = /(?<![A-Za-z\d/+=])[A-Za-z\d/+]{40}(?![A-Za-z\d/+=])/g
/** A bare run of 40 characters is a secret key only near such a word: git's hashes are as long. */
const AWS_NEAR = /aws|secret|AKIA|ASIA/i

function findAwsSecret(text: string): Span[] {
  return spansOf(AWS_SECRET, text, ({ 0: run, index }) => {
    const mixed = /[a-z]/.test(run) && /[A-Z]/.test(run) && /\d/.test(run)
    return mixed && AWS_NEAR.test(text.slice(Math.max(0, index - 80), index))
  })
}

const HEX_KEY = /(?<![A-Za-z\d])(?:0x)?[\da-f]{64}(?![A-Za-z\d])/gi
const HEX_KEY_NEAR = /private|priv[_ -]?key|secret|wallet|signer|deployer|mnemonic|\bpk\b|signing key/i

const HASH_BEFORE =
  /(?:sha-?\d{0,3}|hash|digest|checksum|commit|\btx|transaction|\bcid|topic|block|root)(?: is)?\W{0,4}$/i

/** 64 hex digits are mostly a SHA-256: a key only near such a word. */
function findHexKey(text: string): Span[] {
  return spansOf(HEX_KEY, text, ({ index }) => {
    const before = text.slice(Math.max(0, index - 48), index).replace(/\[[A-Z_]+\]/g, '')
    return HEX_KEY_NEAR.test(before) && !HASH_BEFORE.test(before)
  })
}

const BEGIN_KEY = /-----BEGIN [A-Z\d ]{0,40}PRIVATE KEY(?: BLOCK)?-----|PuTTY-User-Key-File-\d: /g
const END_KEY = /-----END [A-Z\d ]{0,40}PRIVATE KEY(?: BLOCK)?-----|Private-MAC: [\da-f]{1,128}/g
/** A line of a block without an end: base64, a header of the block, or nothing. */
const KEY_LINE =
  /^[\s>|"'`+,\\]{0,16}(?:(?:Proc-Type|DEK-Info|Version|Comment|Encryption|Public-Lines|Private-Lines|Hash|Charset): .{0,200}|(?:[A-Za-z\d+/=]|\\[nr]){0,4096}[\s"'`+,;\\]{0,16})$/

function findKeyBlock(text: string): Span[] {
  const spans: Span[] = []
  let ended = true
  for (const { start, end: body } of spansOf(BEGIN_KEY, text)) {
    if (start < (spans.at(-1)?.end ?? 0)) continue
    END_KEY.lastIndex = body
    const close: RegExpExecArray | null = ended ? END_KEY.exec(text) : null
    // Without an end behind this block there is none behind the next ones: looking again would take quadratic time.
    ended = close !== null
    spans.push({ start, end: close === null ? unterminatedEnd(text, body) : END_KEY.lastIndex })
  }
  return spans
}

function unterminatedEnd(text: string, body: number): number {
  let end = body
  for (let line = body; line < text.length; ) {
    const newline = text.indexOf('\n', line)
    const next = newline === -1 ? text.length : newline + 1
    const content = text.slice(line, newline === -1 ? text.length : newline)
    if (!KEY_LINE.test(content)) {
      const rest = /^(?:[A-Za-z\d+/=]|\\[nr]){16,}/.exec(content)
      return rest === null ? end : line + rest[0].length
    }
    if (content.trim() !== '') end = line + content.length
    line = next
  }
  return end
}

export const TOKEN_RULES: readonly Rule[] = [
  { id: 'private-key', category: 'secret', replacement: '[PRIVATE_KEY]', find: findKeyBlock },
  ...TOKENS.map(([id, replacement, pattern]) => ({
    id,
    category: 'secret',
    replacement,
    hint: TOKEN_HINT,
    acrossLines: true,
    find: (text: string) => spansOf(pattern, text),
  })),
  { id: 'aws-secret-key', category: 'secret', replacement: '[AWS_SECRET]', hint: AWS_NEAR, find: findAwsSecret },
  { id: 'evm-private-key', category: 'secret', replacement: '[EVM_KEY]', hint: HEX_KEY_NEAR, find: findHexKey },
]
