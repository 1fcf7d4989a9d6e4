/**
 * Sentences in other styles than the rules were made with, written after them. The rules found 39 of the 40 when first run, and
 * nothing in the other 40; what they miss is listed, not tuned for.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSanitizer } from './sanitize.ts'

const sanitize = createSanitizer()
const m = (length: number) => 'Zk4Qw8Rt2Yx6Lp0N'.repeat(9).slice(0, length)

/** The sentence, and what must not be left of it. */
const WITH: readonly (readonly [sentence: string, raw: string])[] = [
  [
    'Hi, could you forward this to Ms. Petersen? Her address is inga.petersen@stadtwerke-nord.example and she waits.',
    'inga.petersen@stadtwerke-nord.example',
  ],
  ['Contact: dev_ops99@sub.mail.acme.io (work hours only)', 'dev_ops99@sub.mail.acme.io'],
  ['email=klaus%2Btest%40firma.de&lang=de', 'klaus%2Btest%40firma.de'],
  ['"From: Ola Nordmann <ola.nordmann@posten.no>"', 'ola.nordmann@posten.no'],
  ['You find me under marie-claire AT orange DOT fr', 'marie-claire AT orange DOT fr'],
  ['ping me: t.k{at}gmx{dot}net', 't.k{at}gmx{dot}net'],
  ['Please ring our plumber, 0161 496 0123, before five.', '0161 496 0123'],
  ['Tel.: 089 / 636-48018', '089 / 636-48018'],
  ['His mobile number is (0)7700 900 456.', '7700 900 456'],
  ['Reach support under +33 1 70 18 99 00 or by fax.', '+33 1 70 18 99 00'],
  ['WhatsApp: +55 11 98765-4321', '+55 11 98765-4321'],
  ['my cell 2125550187 works too', '2125550187'],
  ['In Tokyo dial 03-1234-5678', '03-1234-5678'],
  ['Client connected from 84.115.22.190 port 51234 ssh2', '84.115.22.190'],
  ['deny all from 2a02:8388:e103:2700:aede:48ff:fe00:1122;', '2a02:8388:e103:2700:aede:48ff:fe00:1122'],
  ['X-Forwarded-For: 198.51.100.23, 10.20.30.40', '198.51.100.23'],
  ['Paid with 5105-1051-0510-5100 exp 04/29', '5105-1051-0510-5100'],
  ['Amex 3714 496353 98431 was declined', '3714 496353 98431'],
  ['Bitte auf AT61 1904 3002 3457 3201 überweisen.', 'AT61 1904 3002 3457 3201'],
  ['iban:FR1420041010050500013M02606;bic:X', 'FR1420041010050500013M02606'],
  ["error: ENOENT open '/Users/bfranklin/projects/app/config.yml'", 'bfranklin'],
  ['at Object.<anonymous> (/home/tesla/projects/coil/index.js:10:5)', 'tesla'],
  ['Cannot find path C:\\Users\\m.curie\\AppData\\Local\\Temp', 'm.curie'],
  [`export GITHUB_TOKEN=gho_${m(36)}`, `gho_${m(36)}`],
  [`the bot runs with 987654321:AA${m(33)}`, `AA${m(33)}`],
  [`const stripe = new Stripe("rk_live_${m(24)}")`, `rk_live_${m(24)}`],
  [`OPENAI says: Incorrect API key provided: sk-${m(48)}.`, `sk-${m(48)}`],
  [`key: "AIza${m(35)}",`, `AIza${m(35)}`],
  [`_authToken=npm_${m(36)}`, `npm_${m(36)}`],
  [`[default]\naws_access_key_id = AKIA${'QYLPMN5H'.repeat(2)}\naws_secret_access_key = ${m(40)}`, m(40)],
  ['DATABASE_URL="mysql://shop:Wint3r!sale@10.3.0.9:3306/shop"', 'Wint3r!sale'],
  ['Data Source=srv;Initial Catalog=db;User ID=sa;Password=P@ssw0rd-2024;', 'P@ssw0rd-2024'],
  [`rediss://default:${m(20)}@cache.internal:6380/0`, m(20)],
  ['spring.datasource.password: Sommer2023', 'Sommer2023'],
  ['My login is anna and my password: Blumentopf7', 'Blumentopf7'],
  ['use the passphrase "open sesame please" for it', 'open sesame please'],
  [`{"refresh_token":"1%2F%2F${m(30)}"}`, m(30)],
  ['curl -H "Authorization: Basic YW5uYTpnZWhlaW0=" https://api.local', 'YW5uYTpnZWhlaW0='],
  [
    'PRIVATE_KEY=0x' + '59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
    '59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
  ],
  ['Her social is 219-09-9999, careful.', '219-09-9999'],
]
const WITHOUT = `The build finished in 4.2 seconds with 0 errors and 12 warnings.
Bump lodash from 4.17.20 to 4.17.21 and typescript to 5.9.3.
commit 9fceb02d0ae598e95dc970b74767f19372d61af8 (HEAD -> main)
sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
id: 3f2504e0-4f89-11d3-9a0c-0305e82c3301
Set the timeout to 30000 ms and the retries to 5.
listen 0.0.0.0:8080; proxy_pass http://127.0.0.1:3000;
2026-11-17T04:30:17.123Z INFO worker started pid=48213
SELECT id, email, phone FROM users WHERE created_at > '2024-01-01';
const user = await db.users.findOne({ email: req.body.email })
type Props = { token: string; password?: string; onSubmit: () => void }
if (password.length < 8) throw new Error('password is too short')
The token is renewed every ten minutes by the keeper.
Use environment variables: password: \${DB_PASSWORD}
npm install @scope/pkg@2.0.0-beta.3 --save-dev
git remote add origin git@gitlab.com:group/project.git
import { a } from '../utils/home/path.js'
Rate: 1,234,567.89 EUR; ratio 0.000123456789; pi 3.141592653589793
ISBN 978-3-16-148410-0 is the classic example.
RFC 2822, section 3.4.1, describes addr-spec.
Version 10.0.19045.3693 of Windows.
std::unordered_map<std::string, int> counts;
00:00:12.345 --> 00:00:15.678
matrix = [[1 2 3] [4 5 6] [7 8 9]]
color: #a1b2c3; width: 100%; content: "\\201C";
chmod 0755 /usr/local/bin/tool && ls -la /home
grep -rn "TODO" src/ | wc -l
POST /api/v2/users/12345/orders?page=2&limit=100 HTTP/1.1
docker run -p 5432:5432 -e POSTGRES_DB=app postgres:16.1
x = 0xdeadbeefcafebabe; mask = 0b1010
Order number 100023456 was shipped on 12/05/2024.
tel: links are supported by mobile browsers since 2010
We meet at the office at 10 dot on time
Secret santa is on 24.12.2025, bring a token of appreciation.
The key is to keep functions small.
integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
max_tokens: 1024, temperature: 0.7, token_count=311
for (let i = 0; i < 10; i++) sum += data[i] @ weights.T
latitude 52.520008, longitude 13.404954`.split('\n')

/** A pass-phrase with blanks, without a sign before it. */
const MISSED = ['open sesame please']

// B15
test('of 40 sentences with personal data or secrets 39 lose them', () => {
  const left = WITH.filter(([sentence, raw]) => sanitize(sentence).text.includes(raw))
  assert.equal(WITH.length, 40)
  assert.deepEqual(
    left.map(([, raw]) => raw),
    MISSED,
  )
})

test('40 sentences without any stay as they are', () => {
  assert.equal(WITHOUT.length, 40)
  for (const sentence of WITHOUT) assert.equal(sanitize(sentence).text, sentence)
})
