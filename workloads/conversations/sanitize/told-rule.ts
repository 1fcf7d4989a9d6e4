/** Secrets that a sentence, a command, a header or markup names in its own way, without `name = value`. */
import { type Span, spansOf } from './rule.ts'

/** `--password hunter2`, `the password is hunter2!`: a digit or a sign within, else it is a sentence. */
const SENTENCE =
  /(?:--(?:[a-z]{1,20}-)?(?:password|passwd|token|secret|api-key)\s{1,2}|(?<!\[)(?:\b(?:password|passwd|passphrase|passcode|passwort|kennwort|mot de passe|contrase[nñ]a|pwd|secret|token|api key|access key|credentials?)\b|п[аa][рp][оo]ль|パスワード|密码|密碼)(?:[^\n=:'"`]{0,24}?\s(?:is|was|to|are|ist|lautet|est|es)(?: now)?:?\s{1,2}|\s?[は是]\s{0,2}))["'`]?(?=[^\s"'`]{0,60}[\d!@#$%^&*?+])([!-~]{6,128}?)(?=["'`]|[.,;:!?)]{0,2}(?:\s|$))/dgi
/** mysql -uroot -phunter2, sshpass -p hunter2, docker login -p hunter2; login bob password hunter2 of a .netrc. */
const COMMAND =
  /\b(?:(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n|;&]{0,160}?\s-p|sshpass\s{1,2}-p\s{0,2}|(?:docker|podman|helm registry) login\b[^\n|;&]{0,160}?\s-p\s{1,2}|\blogin\s{1,4}\S{1,64}\s{1,4}password\s{1,4})["']?([^\s"'$<-][^\s"']{2,127})/dg
/** WITH PASSWORD 'hunter2', IDENTIFIED BY 'hunter2'. */
const SQL = /\b(?:PASSWORD|IDENTIFIED(?:\s{1,2}WITH\s{1,2}\w{1,40})?\s{1,2}BY)\s{1,4}'([^'\s]{3,128})'/dgi
/** <password>hunter2</password>, and a row of a table: | password | hunter2 |. */
const ELEMENT =
  /<[\w:.-]{0,40}(?:password|passwd|passphrase|secret|token|api-?key)>\s{0,2}([^<>\s${}]{3,256})\s{0,2}<\//dgi
const CELL =
  /(?:password|passwd|passphrase|passwort|secret|token|api[_ -]?key)[`* ]{0,12}[|\t][`* ]{0,12}(?=[!-~]{0,60}\d)(?=[!-~]{0,60}[A-Za-z])([^\s|`()]{8,128})(?=[`* ]{0,40}(?:[|\t]|\r?\n|$))/dgi
/** auth=('bob', 'hunter2'), .password("hunter2"), setApiKey('…'): not getPassword or hashPassword. */
const CALL =
  /(?:\bauth\s?=\s?\(\s?["'][^"'\n]{1,64}["'],\s?|(?:\.|\b(?:set|with)_?)(?:password|passphrase|passwd|secret_?(?:key)?|api_?key|(?:access|auth)_?token)\(\s?)["']([^"'\s]{4,256})["']/dgi
const COOKIE = /\b(?:set-)?cookie["'`]?\s{0,2}:\s{0,2}["'`]?(?=[\w.%-]{1,64}=)([^\r\n"'`]{8,4096})/dgi
const SESSION = /\b(?:phpsessid|jsessionid|asp\.net_sessionid|connect\.sid)=([^\s;,&"'`]{8,256})/dgi
const QUERY_KEY = /[?&]key=(?=[A-Za-z_-]{0,40}\d)([\w-]{24,128})/dg

/** Each with words, in small letters, one of which is part of all that it matches: compiling the others takes milliseconds. */
const PATTERNS: readonly (readonly [pattern: RegExp, words: readonly string[]])[] = [
  [
    SENTENCE,
    [
      ...['pass', 'pwd', 'kennwort', 'contrase', 'secret', 'token', 'api key', 'api-key', 'access key', 'credential'],
      ...['п', 'パスワード', '密码', '密碼'],
    ],
  ],
  [COMMAND, ['mysql', 'mariadb', 'sshpass', 'docker', 'podman', 'helm', 'password']],
  [SQL, ['password', 'identified']],
  [ELEMENT, ['</']],
  [CELL, ['|', '\t']],
  [CALL, ['(']],
  [COOKIE, ['cookie']],
  [SESSION, ['sessid', 'sessionid', 'connect.sid']],
  [QUERY_KEY, ['key=']],
]

/** Part of every text that has one of them. */
export const TOLD_WORDS: readonly string[] = [
  ...['cookie', 'mysql', 'mariadb', ' login', 'identified', 'sessid', 'sessionid', 'connect.sid', 'key='],
  ...['п', 'パスワード', '密码', '密碼'],
]

export function findTold(text: string): Span[] {
  const lower = text.toLowerCase()
  return PATTERNS.flatMap(([pattern, words]) =>
    words.some((word) => lower.includes(word)) ? spansOf(pattern, text, undefined, 1) : [],
  )
}
