/** What each rule finds, and what it leaves alone. Keys are put together here, so that no scanner takes them for real ones. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BUILT_IN_RULES, createSanitizer } from './sanitize.ts'

const sanitize = createSanitizer()

function mixed(length: number): string {
  return 'aB3dE5gH7jK9'.repeat(Math.ceil(length / 12)).slice(0, length)
}

const HEX64 = '4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318'
const PEM = (kind: string) => `-----BEGIN ${kind}-----\nMIIEowIBAAKCAQEA\nq83Zr+/a=\n-----END ${kind}-----`

interface Case {
  /** The text, and what becomes of it. */
  readonly finds: readonly (readonly [text: string, sanitised: string])[]
  readonly leaves: readonly string[]
}

/** By the id of the rule. */
const CASES: Readonly<Record<string, Case>> = {
  mail: {
    finds: [
      ['write to john.doe+news@mail.example.co.uk.', 'write to [EMAIL].'],
      ['<jane@example.org>, "x_1@example.de"', '<[EMAIL]>, "[EMAIL]"'],
      ['mailto:o-k@exämple.de?subject=x', 'mailto:[EMAIL]?subject=x'],
      ['用户@例子.广告 and a@xn--exmple-cua.de', '[EMAIL] and [EMAIL]'],
      ['user=ann@example.com&x=1', 'user=[EMAIL]&x=1'],
    ],
    leaves: [
      'git clone git@github.com:owner/name.git',
      'npm i left-pad@1.3.0 @types/node@24.19.2 logo@2x.png',
      '@decorator class A {} // a @ b, x@y, @',
      'user@localhost',
    ],
  },
  'mail-spelled': {
    finds: [
      ['john (at) example (dot) com', '[EMAIL]'],
      ['reach jane.doe [at] example.org, please', 'reach [EMAIL], please'],
      ['it is john at example dot co dot uk', 'it is [EMAIL]'],
      ['JOHN AT EXAMPLE DOT COM', '[EMAIL]'],
      ['john @ example . com', '[EMAIL]'],
    ],
    leaves: [
      'look at the dot product of x',
      'meet at noon. come early',
      'y = a @ self.weight',
      'arrays (at) index [0]',
    ],
  },
  phone: {
    finds: [
      ['call +49 30 1234567 or +1 (415) 555-2671', 'call [PHONE] or [PHONE]'],
      ['0049 171 1234567; +442079460958', '[PHONE]; [PHONE]'],
      ['(555) 234-5678, 555-234-5678, 1-555-234-5678', '[PHONE], [PHONE], [PHONE]'],
      ['06 12 34 56 78 / 06.12.34.56.78', '[PHONE] / [PHONE]'],
      ['030/1234567, 0171-1234567, 020 7946 0958', '[PHONE], [PHONE], [PHONE]'],
      ['(11) 91234-5678 and 138 1234 5678', '[PHONE] and [PHONE]'],
      ['my phone is 5552345678, cell: 612345678', 'my phone is [PHONE], cell: [PHONE]'],
    ],
    leaves: [
      'on 2024-11-17 at 12:30:45 and 01.02.2024 10:30',
      '1700000000000 1700000000 86400000 id 5552345678',
      'ports 8080, 5432 and 27017; 3.14159265; 1,234,567',
      '550e8400-e29b-41d4-a716-446655440000',
      '1 2 4 8 16 30 30; 60 120 240 480 960 1920; 10 10 10 10 10; x + 86400000',
      '2024-11-17T12:30:45.123Z 0123456789abcdef 0123456789',
      'lines 100-200, 192 168 1 1, 0x1234567890',
    ],
  },
  ipv4: {
    finds: [
      ['host 10.1.2.3:8080, 192.168.0.7/24', 'host [IP]:8080, [IP]/24'],
      ['http://203.0.113.9/x and root@198.51.100.4', 'http://[IP]/x and root@[IP]'],
    ],
    leaves: [
      'version 1.2.3.4, v1.2.3.4, Version: 1.2.3.4, >=1.2.3.4, Chrome/1.2.3.4',
      '127.0.0.1:3000 0.0.0.0 255.255.255.0',
      '1.3.6.1.4.1 and 1.2.3.4.5 and 300.1.2.3 and 1.2.3',
      'see section 4.1.2.3',
    ],
  },
  ipv6: {
    finds: [
      ['at 2001:db8:85a3::8a2e:370:7334 now', 'at [IP] now'],
      ['[fe80::1%eth0]:80, 2001:0db8:0000:0000:0000:ff00:0042:8329', '[[IP]]:80, [IP]'],
    ],
    leaves: ['std::vector, a::b, dead::beef, ::1, ::', '12:30:45 and 12:30:45:123', 'Foo::Bar::baz, a:b:c'],
  },
  mac: {
    finds: [['00:1a:2b:3c:4d:5e and 00-1A-2B-3C-4D-5E', '[MAC] and [MAC]']],
    leaves: ['ff:ff:ff:ff:ff:ff 00:00:00:00:00:00', '00:1a:2b:3c:4d', 'sha 00:1a:2b:3c:4d:5e:6f:70'],
  },
  'home-path': {
    finds: [
      ['/home/jane/x/y.ts /Users/john.doe/dev', '/home/[USER]/x/y.ts /Users/[USER]/dev'],
      ['C:\\Users\\John Smith\\Docs c:/Users/kim', 'C:\\Users\\[USER]\\Docs c:/Users/[USER]'],
      ['"C:\\\\Users\\\\kim\\\\x" /mnt/c/Users/kim/z', '"C:\\\\Users\\\\[USER]\\\\x" /mnt/c/Users/[USER]/z'],
      ['file:///home/jane/x', 'file:///home/[USER]/x'],
    ],
    leaves: [
      '/home /Users/ /Users/Shared/x',
      'https://example.com/home/products',
      'src/home/page.ts',
      'C:\\Users\\Public\\x',
    ],
  },
  card: {
    finds: [
      ['4111 1111 1111 1111, 4111-1111-1111-1111', '[CARD], [CARD]'],
      ['5555555555554444 378282246310005 3782 822463 10005', '[CARD] [CARD] [CARD]'],
    ],
    leaves: ['4111 1111 1111 1112', '1700000000000 1700000000000000', '1234567890123456', '4111 1111 1111'],
  },
  iban: {
    finds: [
      ['DE89 3704 0044 0532 0130 00 or GB82WEST12345698765432', '[IBAN] or [IBAN]'],
      ['nl91-abna-0417-1643-00', '[IBAN]'],
    ],
    leaves: ['DE88 3704 0044 0532 0130 00', 'GB82WEST1234569876543', 'AB12 3456 7890 1234', 'DE89 and more'],
  },
  ssn: {
    finds: [
      ['SSN 123-45-6789', 'SSN [SSN]'],
      ['social security number is 123456789', 'social security number is [SSN]'],
    ],
    leaves: ['000-12-3456 666-12-3456 123-00-4567', '2024-11-1723', 'x-123-45-6789-y'],
  },
  'private-key': {
    finds: [
      [`${PEM('RSA PRIVATE KEY')}\nok`, '[PRIVATE_KEY]\nok'],
      [`a ${PEM('OPENSSH PRIVATE KEY')} b ${PEM('PRIVATE KEY')}`, 'a [PRIVATE_KEY] b [PRIVATE_KEY]'],
      [PEM('PGP PRIVATE KEY BLOCK'), '[PRIVATE_KEY]'],
      [`"-----BEGIN EC PRIVATE KEY-----\\n${mixed(64)}\\n"}`, '"[PRIVATE_KEY]"}'],
      [`-----BEGIN PRIVATE KEY-----\n${mixed(64)}\n${mixed(20)}\n\nthen it broke`, '[PRIVATE_KEY]\n\nthen it broke'],
    ],
    leaves: [PEM('CERTIFICATE'), PEM('PUBLIC KEY'), PEM('PGP MESSAGE'), '-----BEGIN -----'],
  },
  'aws-access-key': {
    finds: [[`id ${'AKIA'}IOSFODNN7EXAMPLE.`, 'id [AWS_KEY].']],
    leaves: ['AKIA, ASIAN and AKIAxyz', 'MAKIA1'],
  },
  'aws-secret-key': {
    finds: [[`the aws one: wJalrXUtnFEMI/K7MDENG/${'bPxRfiCYEXAMPLEKEY'}`, 'the aws one: [AWS_SECRET]']],
    leaves: ['aws sha da39a3ee5e6b4b0d3255bfef95601890afd80709', `run ${mixed(40)}`],
  },
  github: {
    finds: [[`${'ghp'}_${mixed(36)} ${'github'}_pat_${mixed(22)}_${mixed(59)}`, '[GITHUB_TOKEN] [GITHUB_TOKEN]']],
    leaves: ['ghp_short github_pat_ ghp_xxx'],
  },
  gitlab: { finds: [[`${'glpat'}-${mixed(20)}`, '[GITLAB_TOKEN]']], leaves: ['glpat-x', 'gl-matrix'] },
  slack: {
    finds: [[`${'xoxb'}-123456789012-${mixed(24)} ${'xapp'}-1-A0${mixed(20)}`, '[SLACK_TOKEN] [SLACK_TOKEN]']],
    leaves: ['xoxo-hugs', 'xoxb-'],
  },
  'slack-webhook': {
    finds: [[`https://hooks.${'slack'}.com/services/T000/B000/${mixed(24)}`, 'https://[SLACK_WEBHOOK]']],
    leaves: ['https://hooks.slack.com/', 'https://api.slack.com/methods'],
  },
  stripe: {
    finds: [[`${'sk'}_live_${mixed(24)}`, '[STRIPE_KEY]']],
    leaves: ['sk_live_', 'risk_test_x', 'task_live_y'],
  },
  anthropic: { finds: [[`${'sk'}-ant-api03-${mixed(40)}`, '[ANTHROPIC_KEY]']], leaves: ['sk-ant-', 'sk-ant-short'] },
  openai: {
    finds: [[`${'sk'}-${mixed(48)} ${'sk'}-proj-${mixed(40)}`, '[OPENAI_KEY] [OPENAI_KEY]']],
    leaves: ['task-1234567890123456789012', 'sk-short', 'sk-learn-and-other-things-like-that'],
  },
  google: { finds: [[`${'AI'}za${mixed(35)}`, '[GOOGLE_KEY]']], leaves: ['AIza', 'AIzawa'] },
  npm: { finds: [[`${'npm'}_${mixed(36)}`, '[NPM_TOKEN]']], leaves: ['npm_config_registry npm_lifecycle_event'] },
  pypi: { finds: [[`${'pypi'}-AgEIcHlwaS5vcmc${mixed(60)}`, '[PYPI_TOKEN]']], leaves: ['pypi-server', 'pypi-AgE'] },
  telegram: { finds: [[`${'123456789'}:AA${mixed(33)}`, '[TELEGRAM_TOKEN]']], leaves: ['12345678:AA', '12:30:AAA'] },
  sendgrid: { finds: [[`${'SG'}.${mixed(22)}.${mixed(43)}`, '[SENDGRID_KEY]']], leaves: ['SG.x.y', 'MSG.a.b'] },
  twilio: { finds: [[`${'SK'}${HEX64.slice(0, 32)}`, '[TWILIO_KEY]']], leaves: [HEX64.slice(0, 32), 'SKU12345'] },
  'hugging-face': { finds: [[`${'hf'}_${mixed(34)}`, '[HUGGING_FACE_TOKEN]']], leaves: ['hf_hub', 'self_aBc1'] },
  digitalocean: { finds: [[`${'dop'}_v1_${HEX64}`, '[DIGITALOCEAN_TOKEN]']], leaves: ['dop_v1_', 'top_v1_x'] },
  shopify: { finds: [[`${'shpat'}_${HEX64.slice(0, 32)}`, '[SHOPIFY_TOKEN]']], leaves: ['shpat_', 'shapes'] },
  vault: { finds: [[`${'hvs'}.${mixed(24)}`, '[VAULT_TOKEN]']], leaves: ['hvs.x', 'chvs.aB3dE5gH7jK9aB3dE5gH7jK9'] },
  'service-token': {
    finds: [[`${'dckr'}_pat_${mixed(27)} ${'gsk'}_${mixed(52)}`, '[TOKEN] [TOKEN]']],
    leaves: ['dckr_pat_', 'key-value-pairs-and-more-of-them-here', 'keyboardInteractiveAuthenticationMethods'],
  },
  jwt: {
    finds: [[`${'eyJ'}hbGciOiJIUzI1NiJ9.${'eyJ'}zdWIiOiIxIn0.${mixed(43)}`, '[JWT]']],
    leaves: ['eyJ', 'eyJhbGciOiJIUzI1NiJ9', 'keyJoin.data.more'],
  },
  'evm-private-key': {
    finds: [
      [`my private key is 0x${HEX64}`, 'my private key is [EVM_KEY]'],
      [`deployer wallet ${HEX64}`, 'deployer wallet [EVM_KEY]'],
    ],
    leaves: [`sha256 ${HEX64}`, `tx 0x${HEX64}`, 'private 0x52908400098527886E0F7030069857D2E4169EE7'],
  },
  'connection-string': {
    finds: [
      ['postgres://joe:hunter2@db.local/app', 'postgres://[CREDENTIALS]@db.local/app'],
      [
        'mongodb+srv://joe:a%40b@c.local redis://:pw@h:6379',
        'mongodb+srv://[CREDENTIALS]@c.local redis://[CREDENTIALS]@h:6379',
      ],
      ['amqp://a:p/w#x@mq/v postgres://a:p@ss@h/d', 'amqp://[CREDENTIALS]@mq/v postgres://[CREDENTIALS]@h/d'],
      [`https://${mixed(20)}@git.local/x.git`, 'https://[CREDENTIALS]@git.local/x.git'],
    ],
    leaves: [
      'https://h:8080/x@y',
      'ssh://git@host/x',
      'https://unpkg.com/react@18.2.0/index.js',
      'x://',
      'sqlite:~/a.db',
    ],
  },
  authorization: {
    finds: [
      [`Authorization: Bearer ${mixed(12)}`, 'Authorization: Bearer [SECRET]'],
      ["-H 'authorization: Basic dXNlcjpwYXNz'", "-H 'authorization: Basic [SECRET]'"],
      [`X-Api-Key: ${mixed(20)}`, 'X-Api-Key: [SECRET]'],
    ],
    leaves: ['the bearer certificate', 'Authorization: Bearer <token>', 'Authorization: Bearer $TOKEN'],
  },
  'user-flag': {
    finds: [['curl -u me:pw -s http://x', 'curl -u [CREDENTIALS] -s http://x']],
    leaves: ['docker run -u 1000 x', 'curl -u "$USER:$PASS" x', 'sort -u a:b.txt -o c'.replace(' a:b.txt', ' a.txt')],
  },
  assignment: {
    finds: [
      ['DB_PASSWORD=hunter2 npm start', 'DB_PASSWORD=[SECRET] npm start'],
      ['password: "correct horse battery"', 'password: "[SECRET]"'],
      ["apiKey: 'abcdef123456', x: 1", "apiKey: '[SECRET]', x: 1"],
      ['{\\"client_secret\\": \\"abc123def\\"}', '{\\"client_secret\\": \\"[SECRET]\\"}'],
      ['jdbc:postgresql://h/d?user=a&password=hunter2&ssl=1', 'jdbc:postgresql://h/d?user=a&password=[SECRET]&ssl=1'],
      ['Server=h;Pwd=hunter;Database=d', 'Server=h;Pwd=[SECRET];Database=d'],
      [`aws_secret_access_key = ${mixed(40)}`, 'aws_secret_access_key = [AWS_SECRET]'],
    ],
    leaves: [
      'token: string, password: string | null, secret: z.string()',
      'const token = await getToken(); password = req.body.password',
      'max_tokens=4096 tokens: 12, token: 7, "token": null',
      `api_key: $${'{API_KEY}'}, password=<your password>, secret: process.env.SECRET`,
      'interface Lease { readonly token: Token }',
      'pass: 12, fail: 0; passed=3; secretary: Ann',
    ],
  },
  told: {
    finds: [
      ['the password is hunter2!', 'the password is [SECRET]!'],
      ['mysql --password s3cret -h x', 'mysql --password [SECRET] -h x'],
      ['set the api key to abc-123-xyz, please', 'set the api key to [SECRET], please'],
    ],
    leaves: [
      'the password is required.',
      'the token is invalid',
      'the secret is stored in a file',
      '--password prompt',
    ],
  },
}

test('every built-in rule has cases from both sides', () => {
  assert.deepEqual(Object.keys(CASES).sort(), BUILT_IN_RULES.map(({ id }) => id).sort())
})

for (const [id, { finds, leaves }] of Object.entries(CASES)) {
  // B10 B15
  test(`${id} finds what it is for`, () => {
    for (const [text, sanitised] of finds) {
      const result = sanitize(text)
      assert.equal(result.text, sanitised)
      assert.equal(sanitize(sanitised).text, sanitised)
    }
    assert.ok(
      finds.some(([text]) => sanitize(text).findings.some(({ rule }) => rule === id)),
      'found by another rule',
    )
  })

  test(`${id} leaves alone what only looks like it`, () => {
    for (const text of leaves) assert.equal(sanitize(text).text, text)
  })
}

// X127
test('replacements are found by no rule, and rules have a category', () => {
  for (const { replacement, category } of BUILT_IN_RULES) {
    assert.match(replacement, /^\[[A-Z_]+\]$/)
    assert.match(category, /^[a-z]+$/)
    const text = `a ${replacement} b password=${replacement} x://${replacement}@h "${replacement}"`
    assert.equal(sanitize(text).text, text)
  }
})
