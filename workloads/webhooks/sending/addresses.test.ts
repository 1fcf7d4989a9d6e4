import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isMillraceError } from '../../../src/errors.ts'
import { status, webhookReceiver } from '../../../test/fixtures/webhook-receiver.ts'
import { isPublicAddress } from './addresses.ts'
import { guardedHttp } from './guarded-http.ts'

/** Hosts that are, or can be made to mean, this machine or its network. */
const FORBIDDEN_HOSTS = [
  // IPv4 loopback in every form that parsers accept.
  ...['127.0.0.1', '127.1', '127.0.1', '2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '017700000001'],
  ...['127.255.255.254', '127.0.0.1.', '0', '0.0.0.0', '0.1.2.3', '①②⑦.⓪.⓪.①', '127。0。0。1', '%31%32%37.0.0.1'],
  // Networks that are not public.
  ...['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '169.254.169.254', '100.64.0.1', '100.127.255.255'],
  ...['192.0.0.1', '192.0.0.170', '192.0.2.1', '198.18.0.1', '198.19.255.255', '198.51.100.7', '203.0.113.9'],
  ...['192.88.99.1', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255', '0xa9fea9fe', '2852039166'],
  // IPv6: loopback, unspecified, mapped, compatible, NAT64, 6to4, Teredo, unique local, link-local, site-local, multicast.
  ...[
    '[::1]',
    '[::]',
    '[0:0:0:0:0:0:0:1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[::ffff:10.0.0.1]',
    '[::127.0.0.1]',
  ],
  ...['[64:ff9b::7f00:1]', '[64:ff9b::10.0.0.1]', '[64:ff9b:1::1]', '[2002:7f00:1::]', '[2002:a00:1::1]', '[2001::1]'],
  ...['[fc00::1]', '[fd12:3456::1]', '[fe80::1]', '[fec0::1]', '[ff02::1]', '[2001:db8::1]', '[3fff::1]', '[100::1]'],
  ...['[2001:2::1]', '[2001:10::1]', '[5f00::1]'],
  // Names.
  ...['localhost', 'LOCALHOST', 'localhost.', 'a.localhost', 'localhost.localdomain', 'printer.local', 'router'],
  ...['metadata.google.internal', 'nas.home.arpa', 'ｌｏｃａｌｈｏｓｔ', 'loc%61lhost'],
]

const FORBIDDEN_URLS = [
  ...[
    'http://example.com/',
    'ftp://example.com/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'data:,x',
    'ws://a.example',
  ],
  ...['https://example.com@127.0.0.1/', 'https://user:pass@example.com/', 'https://', 'https:///', 'not a url', ''],
  ...['https:\\\\127.0.0.1', 'https://127.0.0.1\\@example.com/', '//127.0.0.1/', 'https://example.com:99999/'],
]

// X048
test(`${FORBIDDEN_HOSTS.length + FORBIDDEN_URLS.length} kinds of forbidden addresses never reach an internal receiver`, async () => {
  await using receiver = await webhookReceiver()
  await using six = await webhookReceiver({ host: '::1' }).catch(() => null)
  const http = guardedHttp({ resolve: async () => ['127.0.0.1'] })
  const ports = [receiver.port, ...(six === null ? [] : [six.port])]
  const urls = [
    ...FORBIDDEN_HOSTS.flatMap((host) => ports.map((port) => `https://${host}:${port}/`)),
    ...FORBIDDEN_URLS,
  ]
  assert.ok(FORBIDDEN_HOSTS.length + FORBIDDEN_URLS.length >= 40)
  for (const url of urls) {
    await assert.rejects(
      http.post(url, { body: '{}', headers: {}, timeout: 1_000 }),
      (error) => isMillraceError(error, 'ERR_NON_RETRYABLE') && !error.message.includes('pass@'),
      url,
    )
    assert.throws(() => http.check(url), url)
  }
  assert.equal(receiver.requests.length + (six?.requests.length ?? 0), 0)
  http.close()
})

// X048
test('an origin that the configuration names is reached, and only exactly that one', async () => {
  await using receiver = await webhookReceiver()
  receiver.answer(status(204))
  const http = guardedHttp({ allow: [receiver.origin] })
  const send = (url: string) => http.post(url, { body: '{}', headers: {}, timeout: 1_000 })
  assert.equal((await send(`${receiver.origin}/hooks?a=1`)).status, 204)
  assert.equal(receiver.requests[0]?.url, '/hooks?a=1')
  const others = [
    `http://localhost:${receiver.port}/`,
    `http://127.0.0.1:${receiver.port + 1}/`,
    `https://127.0.0.1:${receiver.port}/`,
  ]
  for (const url of others) await assert.rejects(send(url), (error) => isMillraceError(error, 'ERR_NON_RETRYABLE'), url)
  assert.equal(receiver.requests.length, 1)
  http.close()
  for (const bad of ['127.0.0.1:80', 'http://127.0.0.1/path', 'http://a@127.0.0.1', 'ftp://127.0.0.1', '*']) {
    assert.throws(() => guardedHttp({ allow: [bad] }), /'allow' has/, bad)
  }
})

test('a refusal says what would help', () => {
  const http = guardedHttp({ allow: ['http://127.0.0.1:8080'] })
  for (const [url, advice] of [
    ['hooks', /it is not a URL; give one such as https:\/\/example\.com\/hooks$/],
    ['https://example.com:99999/', /it is not a URL; give one such as/],
    ['ftp://example.com/', /it is not https; give an https URL$/],
    ['http://ann:secret@127.0.0.1:8080/', /its URL has credentials; leave them out/],
    ['http://example.com/', /it is not https; add its origin to 'allow' to permit it$/],
    ['https://10.0.0.1/', /its address is not public; add its origin to 'allow' to permit it$/],
  ] as const) {
    assert.throws(() => http.check(url), advice, url)
  }
})

test('public addresses are taken', () => {
  const good = [
    '1.1.1.1',
    '8.8.8.8',
    '93.184.216.34',
    '100.63.255.255',
    '172.32.0.1',
    '198.20.0.1',
    '2606:4700::1',
    '2a00:1450:4001::5',
  ]
  for (const address of good) assert.equal(isPublicAddress(address), true, address)
  for (const bad of ['fe80::1%eth0', '', 'example.com', '::ffff:8.8.8.8'])
    assert.equal(isPublicAddress(bad), false, bad)
})

test('no IPv4 address becomes public by the way it is carried in IPv6', () => {
  const byte = fc.integer({ min: 0, max: 255 })
  fc.assert(
    fc.property(byte, byte, byte, byte, (a, b, c, d) => {
      const dotted = [a, b, c, d].join('.')
      const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
      for (const carried of [`::ffff:${dotted}`, `::${dotted}`, `64:ff9b::${dotted}`, `2002:${hex}::1`]) {
        assert.equal(isPublicAddress(carried), false, carried)
      }
    }),
    { numRuns: 200 },
  )
})
