/** Secrets in the ways that commands, headers, markup, other languages and code name them; and text that only looks so. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSanitizer } from './sanitize.ts'

const sanitize = createSanitizer()
const m = (length: number) => 'Zk4Qw8Rt2Yx6Lp0N'.repeat(9).slice(0, length)

const FOUND: readonly (readonly [text: string, sanitised: string])[] = [
  ['mysql -u root -pS3cretPw shop', 'mysql -u root -p[SECRET] shop'],
  ["sshpass -p 'S3cretPw' ssh host", "sshpass -p '[SECRET]' ssh host"],
  ['docker login -u bob -p S3cretPw', 'docker login -u bob -p [SECRET]'],
  ['machine x login bob password hunter2xx', 'machine x login bob password [SECRET]'],
  ["ALTER USER app WITH PASSWORD 'S3cretPw';", "ALTER USER app WITH PASSWORD '[SECRET]';"],
  ["CREATE USER a IDENTIFIED BY 'S3cretPw'", "CREATE USER a IDENTIFIED BY '[SECRET]'"],
  ['<password>hunter2</password>', '<password>[SECRET]</password>'],
  ['| password | hunter2xx |', '| password | [SECRET] |'],
  ["get(url, auth=('admin', 'S3cretPw'))", "get(url, auth=('admin', '[SECRET]'))"],
  ['builder.password("Hunter2xx")', 'builder.password("[SECRET]")'],
  ['user.setPassword("Hunter2xx")', 'user.setPassword("[SECRET]")'],
  [`Cookie: theme=dark; sessionid=${m(32)}`, 'Cookie: [SECRET]'],
  [`-b PHPSESSID=${m(26)}`, '-b PHPSESSID=[SECRET]'],
  [`https://maps.test/?key=${m(32)}&x=1`, 'https://maps.test/?key=[SECRET]&x=1'],
  ['le mot de passe est Secret123', 'le mot de passe est [SECRET]'],
  ['пароль: Sekret123', 'пароль: [SECRET]'],
  ['パスワードは himitsu99 です', 'パスワードは [SECRET] です'],
  ['密码：abc12345', '密码：[SECRET]'],
  ['- name: DB_PASSWORD\n  value: Sup3rS3cret', '- name: DB_PASSWORD\n  value: [SECRET]'],
  ['<add key="Password" value="Sup3rS3cret!" />', '<add key="Password" value="[SECRET]" />'],
  ['{"name":"API_TOKEN","value":"Sup3rS3cret"}', '{"name":"API_TOKEN","value":"[SECRET]"}'],
  [`const apiKey: string = '${m(20)}'`, "const apiKey: string = '[SECRET]'"],
  ["password: str | None = 'Hunter2xx'", "password: str | None = '[SECRET]'"],
  [String.raw`"{\\\"password\\\": \\\"hunter2x\\\"}"`, String.raw`"{\\\"password\\\": \\\"[SECRET]\\\"}"`],
  [`SESSION_TOKEN=${m(24)}.abc.${m(27)}`, 'SESSION_TOKEN=[SECRET]'],
  [`login('M${m(23)}.Gabcde.${m(38)}')`, "login('[TOKEN]')"],
  [`https://discord.com/api/webhooks/123456789012345678/${m(68)}`, 'https://[TOKEN]'],
  ['phone_number = "4155552671"; tél: 0698765432', 'phone_number = "[PHONE]"; tél: [PHONE]'],
  ['Contact number: 9876543210', 'Contact number: [PHONE]'],
]

const LEFT: readonly string[] = [
  "credentials: 'same-origin', type: 'password'",
  'password: "Password is required"',
  "errors.password = 'Please enter your password'",
  'password: !vault |',
  'password: !Ref DBPassword',
  'docker run -u 1000:1000 --rm alpine',
  'mysql -u root -p shop',
  "getPassword('primary') hashPassword('input')",
  `<password>\${password}</password>`,
  '| password | string | required |',
  'ALTER TABLE users ADD COLUMN password TEXT NOT NULL',
  'Cookie: a small piece of text',
  'https://example.test/?key=created_at',
  'Le mot de passe est trop court.',
  'パスワードは8文字以上です',
  'пароль: неверный',
  'Passwort: ungültig',
  'name: password\nlabel: value: 3',
  'name: LOG_LEVEL\nvalue: debug2',
  'token = config.auth.accessTokenV2',
  'password: string = input',
  'const token: Token = parse(line)',
  'the contact number of the node is 7',
]

// B15
test('secrets that are named in other ways than name = value are replaced', () => {
  for (const [text, sanitised] of FOUND) assert.equal(sanitize(text).text, sanitised)
})

test('text that only looks as if it named a secret stays', () => {
  for (const text of LEFT) assert.equal(sanitize(text).text, text)
})
