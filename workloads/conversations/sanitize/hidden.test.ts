/** Secrets that are hidden: by characters without width, other scripts, escapes, encodings, line breaks, or inside each other. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSanitizer } from './sanitize.ts'

const sanitize = createSanitizer()
const MAIL = 'john@example.com'
const TOKEN = `${'ghp'}_${'aB3dE5gH7'.repeat(4)}`

function becomes(text: string, sanitised: string): void {
  assert.equal(sanitize(text).text, sanitised)
  assert.equal(sanitize(sanitised).text, sanitised)
}

const base64 = (text: string, encoding: BufferEncoding = 'utf8') => Buffer.from(text, encoding).toString('base64')

// B15
test('characters without width, soft hyphens and accents inside hide nothing', () => {
  for (const hidden of ['\u200b', '\u200d', '\u00ad', '\u2060', '\ufeff', '\u202e', '\ufe0f', '\u0335', '\u{e0061}']) {
    becomes(`x ${[...MAIL].join(hidden)} y`, 'x [EMAIL] y')
    becomes(`x ${[...TOKEN].join(hidden)} y`, 'x [GITHUB_TOKEN] y')
  }
})

// B15
test('full-width letters, digits of other scripts and letters that look like Latin ones are read as those', () => {
  becomes('ｊｏｈｎ＠ｅｘａｍｐｌｅ．ｃｏｍ', '[EMAIL]')
  becomes('𝗷𝗼𝗵𝗻@𝗲𝘅𝗮𝗺𝗽𝗹𝗲.𝗰𝗼𝗺', '[EMAIL]')
  becomes('ring +٤٩ ٣٠ ١٢٣٤٥٦٧, +४९ ३० १२३४५६७', 'ring [PHONE], [PHONE]')
  becomes('٤١١١ ١١١١ ١١١١ ١١١١', '[CARD]')
  becomes('раѕѕwоrd=hunter2', 'раѕѕwоrd=[SECRET]')
  becomes('555–234–5678 and 10。1。2。3', '[PHONE] and [IP]')
  becomes(`ѕk-ant-${'aB3dE5gH7'.repeat(4)}`, '[ANTHROPIC_KEY]')
})

// B15
test('escapes of addresses, HTML, JSON and JavaScript are resolved, also twice', () => {
  for (const at of ['%40', '&#64;', '&#x40;', '&commat;', '\\u0040', '\\x40', '\\u{40}', '%2540', '&amp;#64;']) {
    becomes(`to john${at}example.com!`, 'to [EMAIL]!')
  }
  becomes('j%6Fhn%40ex%61mple%2Ecom', '[EMAIL]')
  becomes('file=%2Fhome%2Fjane%2Fx', 'file=%2Fhome%2F[USER]%2Fx')
  becomes('jo\\u200bhn@example.com', '[EMAIL]')
  becomes('100%40 of it, a%20b &amp; c', '100%40 of it, a%20b &amp; c')
})

// B15
test('base64 and hex of a text with a finding is replaced as a whole', () => {
  becomes(`data ${base64(`mail ${MAIL} now`)}.`, 'data [EMAIL].')
  becomes(`data ${base64(MAIL)}`, 'data [EMAIL]')
  becomes(`data:text/plain;base64,${base64('password=hunter2!')}`, 'data:text/plain;base64,[SECRET]')
  becomes(`-EncodedCommand ${base64(`curl ${MAIL}`, 'utf16le')}`, '-EncodedCommand [EMAIL]')
  becomes(base64(base64(`mail ${MAIL} now`)), '[EMAIL]')
  becomes(Buffer.from(MAIL).toString('hex'), '[EMAIL]')
  becomes(`https://example.org/u/${base64(`a ${TOKEN}`).replaceAll('=', '')}`, 'https://example.[GITHUB_TOKEN]')
  const lines =
    base64(`${'some text '.repeat(12)}${MAIL}`)
      .match(/.{1,76}/g)
      ?.join('\n') ?? ''
  becomes(`begin\n${lines}\nend`, 'begin\n[EMAIL]\nend')
})

test('base64 without a finding stays', () => {
  for (const text of [
    base64('nothing to see here, move along'),
    base64('\u0000\u0001binary\u0002'.repeat(20)),
    'thisIsALongCamelCaseName',
  ]) {
    becomes(text, text)
  }
})

// B15
test('a token or mail address that goes on in the next line is found; a whole one does not take in the next line', () => {
  becomes(`key ${TOKEN.slice(0, 20)}\n${TOKEN.slice(20)} then`, 'key [GITHUB_TOKEN] then')
  becomes('see john@\nexample.com', 'see [EMAIL]')
  becomes('> see john@exam-\n> ple.com now', '> see [EMAIL] now')
  becomes(`${TOKEN}\nPlease look`, '[GITHUB_TOKEN]\nPlease look')
  becomes('a@b\nand c.d', 'a@b\nand c.d')
})

// B15
test('one inside the other: all of it goes, with the outer replacement', () => {
  becomes(`postgres://${MAIL}:pw@db/x`, 'postgres://[CREDENTIALS]@db/x')
  becomes(`https://example.org/?access_token=${TOKEN}&a=1`, 'https://example.org/?access_token=[GITHUB_TOKEN]&a=1')
  becomes(`Authorization: Bearer ${TOKEN}`, 'Authorization: Bearer [GITHUB_TOKEN]')
  becomes(`/home/jane/${MAIL}/x`, '/home/[USER]/[EMAIL]/x')
  becomes(`amqp://a:b@10.1.2.3/${MAIL}`, 'amqp://[CREDENTIALS]@[IP]/[EMAIL]')
})

test('an earlier replacement is not taken for the name of a variable', () => {
  for (const text of ['[SECRET] => value', '[GITHUB_TOKEN] = abc123def', '[SECRET] is n42!', '[PHONE] 10 10 10 10 10'])
    becomes(text, text)
})
