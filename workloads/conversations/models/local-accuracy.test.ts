/**
 * How much the local model finds in sentences that its rules were not written from. The figures are in the documentation: a
 * change that makes one of them worse fails here, and one that makes it better should raise it in both places.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { localModel } from './local.ts'

const call = { fetch, signal: new AbortController().signal }

/** A sentence, and the names of people in it. */
const NAMES: readonly (readonly [string, ...string[]])[] = [
  ['Yesterday Katarzyna Nowak showed me her dashboard and the query was the slow part.', 'Katarzyna Nowak'],
  ['I got the dump from Oluwaseun, who works in support.', 'Oluwaseun'],
  ['git blame says this line is from henrik.larsen in 2019.', 'henrik.larsen'],
  ['Can you rename var mariaGonzalezBalance to something neutral?', 'mariaGonzalez'],
  ['The customer, Mrs. Abernathy, cannot log in since Monday.', 'Abernathy'],
  ['Dear Tobias, the build is green again.', 'Tobias'],
  ['Our CTO Wei Zhang wants this in Rust.', 'Wei Zhang'],
  ["Please look at Emma's branch before you merge.", 'Emma'],
  ['The folder is called backup_thomas_mueller_2021.', 'thomas_mueller'],
  ['Rajesh Subramanian reported the outage at noon.', 'Rajesh Subramanian'],
  ['I paired with Lucía Fernández on the parser.', 'Lucía Fernández'],
  ['Signed-off-by: Ingrid Bakke', 'Ingrid Bakke'],
  ['The fixture contains a row for patient Geraldine Whitcombe.', 'Geraldine Whitcombe'],
  ['ask jonas about the vpn, he set it up', 'jonas'],
  ['My manager is Kwame and he approves the budget.', 'Kwame'],
  ['The test user is called pedro_alvarez in staging.', 'pedro_alvarez'],
  ['Jenkins failed because the Docker socket was gone.'],
  ['We moved from Travis to GitHub Actions.'],
  ['Julia is faster than Python for this loop.'],
  ['The Ada compiler rejects the cast.'],
  ['Redis Sentinel elects a new primary within seconds.'],
  ['Use Dijkstra to find the shortest path.'],
  ['In the protocol Alice sends a nonce to Bob.'],
  ['The Grafana panel shows the p95 of Monday in Berlin.'],
  ['max_connections and mark_deleted are the settings that matter.'],
  ['Spring Boot and Apache Kafka are both on the Oracle machine.'],
  ['Call client.close() before the Victoria Metrics exporter stops.'],
  ['The Lambda in Ohio writes to Aurora.'],
  ['Set NODE_ENV to production and rerun the Cypress suite.'],
  ['Docker Desktop on Windows maps the port to Localhost.'],
]

async function measureNames(names: 'off' | 'on'): Promise<{ recall: string; precision: string }> {
  const model = localModel({ names })
  let [right, reported, wanted] = [0, 0, 0]
  for (const [content, ...people] of NAMES) {
    const { items } = await model.findPersonalData([{ id: 'm', role: 'user', content }], call)
    const found = items.filter(({ category }) => category === 'name' || category === 'username')
    reported += found.length
    wanted += people.length
    // A name counts as found when all of it would be replaced.
    right += people.filter((name) => found.some(({ snippet }) => snippet.includes(name))).length
  }
  return { recall: `${right}/${wanted}`, precision: `${right}/${reported}` }
}

/** A sentence, and whether it states something worth keeping. */
const LEARNINGS: readonly (readonly [string, boolean])[] = [
  ['The timeouts went away once we pinned the pool to ten connections.', true],
  ['Root cause: the cron container had a different time zone than the database.', true],
  ['It turned out that WAL files are not included in a plain copy of the database.', true],
  ['We decided on Postgres for the ledger because we need serializable transactions.', true],
  ['Never run migrations from two pods at once.', true],
  ['I prefer small commits over one big commit at the end.', true],
  ['TIL that `npm ci` deletes node_modules first.', true],
  ['The fix was to set keepAliveTimeout above the one of the load balancer.', true],
  ['Rule of thumb: one index per query that runs more than once a second.', true],
  ['To reproduce the race, run the test with --test-concurrency=1 and a slow disk.', true],
  ['node:sqlite blocks the event loop, so heavy queries belong in a worker thread.', true],
  ['Note to self: the staging certificate expires every March.', true],
  ['We no longer use moment, date-fns is smaller and enough for us.', true],
  ['Restarting the kubelet solved the problem for good.', true],
  ['Always quote the variable, otherwise the shell splits it at blanks.', true],
  ['Deadlocks happened because both jobs locked the rows in a different order.', true],
  ['Can you add a test for the empty list?', false],
  ['Please always answer in German.', true],
  ['I think it might be the cache, but I am not sure.', false],
  ['Thanks, that looks good to me.', false],
  ['Why does the build fail on arm64?', false],
  ['Here is the updated function with the new parameter.', false],
  ['I will look into the logs and report back tomorrow.', false],
  ['The meeting was moved to Thursday at ten.', false],
  ['Write a script that renames all files in the folder.', false],
  ['Maybe the problem is the proxy, maybe it is DNS.', false],
  ['We switched to the other meeting room after lunch.', false],
  ['Let me know if anything is unclear.', false],
  ['I always enjoy our chats about compilers.', false],
  ['Should we prefer composition over inheritance here?', false],
]

const THRESHOLD = 0.7

async function measureLearnings(): Promise<{ recall: string; precision: string }> {
  const model = localModel({ names: 'off' })
  let [right, reported] = [0, 0]
  for (const [content, teaches] of LEARNINGS) {
    const wanted = { categories: [], minConfidence: THRESHOLD }
    const { items } = await model.findLearnings([{ id: 'm', role: 'user', content }], wanted, call)
    const isFound = items.some(({ confidence }) => confidence >= THRESHOLD)
    if (isFound) reported += 1
    if (isFound && teaches) right += 1
  }
  return { recall: `${right}/${LEARNINGS.filter(([, teaches]) => teaches).length}`, precision: `${right}/${reported}` }
}

test('names of people in 30 held-out sentences, by rules and lists alone and with compromise', async () => {
  assert.deepEqual(await measureNames('off'), { recall: '11/16', precision: '11/12' })
  assert.deepEqual(await measureNames('on'), { recall: '12/16', precision: '12/13' })
})

test('learnings in 30 held-out sentences', async () => {
  assert.deepEqual(await measureLearnings(), { recall: '12/17', precision: '12/14' })
})
