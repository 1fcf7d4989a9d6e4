import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { hashEmbedder } from './hash.ts'

/** The same said in other words. */
const PARAPHRASES: readonly (readonly [string, string])[] = [
  ['Restart the worker after every deployment.', 'After each deployment the worker has to be restarted.'],
  ['The customer prefers to be called in the morning.', 'Call this customer in the morning, she prefers that.'],
  ['Our database is backed up every night at two.', 'Every night at two a backup of the database is made.'],
  ['Never commit secrets to the repository.', 'Secrets must not be committed to the repository.'],
  ['The build fails when the cache is empty.', 'With an empty cache the build does not succeed.'],
  ['Use UTC for all timestamps in the logs.', 'Timestamps in log files are always written in UTC.'],
  ['Invoices are sent on the first day of the month.', 'On the first of each month we send out the invoices.'],
  ['Ann leads the payments team.', 'The head of the payments team is Ann.'],
  ['The test suite takes sixteen minutes on two cores.', 'On two cores, running all tests needs sixteen minutes.'],
  ['Users can change their password in the settings.', 'In the settings a user may set a new password.'],
  ['Large uploads time out behind the old proxy.', 'Behind the old proxy, uploading large files ends in a timeout.'],
  ['Please answer in short sentences.', 'Keep the sentences of your answers short.'],
  ['The meeting was moved from Monday to Thursday.', 'Instead of Monday, the meeting takes place on Thursday.'],
  ['He is allergic to peanuts.', 'Peanuts cause him an allergic reaction.'],
  ['The car would not start this morning.', 'This morning the vehicle refused to turn on.'],
  ['Prices rise by five percent next year.', 'Next year everything will cost five percent more.'],
]

/** Like each other in their words, and about something else. */
const NEAR_MISSES: readonly (readonly [string, string])[] = [
  ['Restart the worker after every deployment.', 'The worker pays into the pension fund every month.'],
  ['The customer prefers to be called in the morning.', 'The morning train to the customer was late.'],
  ['Our database is backed up every night at two.', 'Two guests arrive every night at our hotel.'],
  ['Never commit secrets to the repository.', 'The repository was moved to another server.'],
  ['The build fails when the cache is empty.', 'The fridge is empty when the children come home.'],
  ['Use UTC for all timestamps in the logs.', 'Use dry logs for the fireplace.'],
  ['Invoices are sent on the first day of the month.', 'The first day of the month is a holiday.'],
  ['Ann leads the payments team.', 'The football team lost the final in May.'],
  ['Users can change their password in the settings.', 'The settings of the oven change with the recipe.'],
  ['The meeting was moved from Monday to Thursday.', 'From Monday to Thursday the museum is closed.'],
  ['Prices rise by five percent next year.', 'The sun will rise at five tomorrow.'],
]

/** Written after the weights and the threshold were chosen with the pairs above. */
const HELD_OUT = {
  same: [
    ['The office is closed between Christmas and New Year.', 'Between Christmas and New Year our office stays closed.'],
    ['Reviews need two approvals before a merge.', 'Before something is merged, two reviewers must approve it.'],
    ['She moved to Lisbon in the spring.', 'In spring she has moved to Lisbon.'],
    ['The printer on the third floor is broken.', 'On the third floor the printer does not work.'],
    [
      'Payments over a thousand euros need a second signature.',
      'A second person signs payments of more than 1000 euros.',
    ],
    ['The dog is afraid of thunder.', 'Thunder frightens the dog.'],
    ['Delete old log files every week.', 'Log files that are old get deleted weekly.'],
    ['My favourite colour is green.', 'I like green more than any other colour.'],
    ['The bakery opens at six.', 'You can buy bread from six in the morning.'],
    ['Turn off the lights when you leave.', 'The last one to go switches off the lamps.'],
  ],
  other: [
    ['The office is closed between Christmas and New Year.', 'The new office is between the bank and the church.'],
    ['Reviews need two approvals before a merge.', 'Two reviews of the restaurant were bad.'],
    ['She moved to Lisbon in the spring.', 'The spring of the clock was moved by hand.'],
    ['The printer on the third floor is broken.', 'The third floor is painted blue.'],
    ['Payments over a thousand euros need a second signature.', 'A thousand people signed the second letter.'],
    ['The dog is afraid of thunder.', 'The thunder came before the rain.'],
    ['Delete old log files every week.', 'Every week we meet at the old mill.'],
    ['The bakery opens at six.', 'Six shops open next to the bakery.'],
  ],
} as const satisfies Record<string, readonly (readonly [string, string])[]>

async function scores(pairs: readonly (readonly [string, string])[]): Promise<readonly number[]> {
  const vectors = await hashEmbedder().embedBatch(pairs.flat())
  return pairs.map((_, index) => {
    const [one = [], other = []] = vectors.slice(index * 2)
    let sum = 0
    for (const [place, value] of one.entries()) sum += value * (other[place] ?? 0)
    return sum
  })
}

async function quality(same: readonly (readonly [string, string])[], other: readonly (readonly [string, string])[]) {
  const [ofSame, ofOther] = [await scores(same), await scores(other)]
  const threshold = hashEmbedder().threshold ?? 0
  const wins = ofSame.flatMap((one) => ofOther.map((two): number => (one > two ? 1 : one === two ? 0.5 : 0)))
  return {
    auc: Number((wins.reduce((sum, win) => sum + win, 0) / wins.length).toFixed(3)),
    found: `${ofSame.filter((score) => score > threshold).length} of ${same.length}`,
    keptApart: `${ofOther.filter((score) => score <= threshold).length} of ${other.length}`,
  }
}

describe('the hash embedder', () => {
  // docs/embeddings.md quotes these figures.
  test('tells paraphrases from near misses as well as its documentation says', async () => {
    assert.deepEqual(await quality(PARAPHRASES, NEAR_MISSES), { auc: 0.898, found: '10 of 16', keptApart: '11 of 11' })
    assert.deepEqual(await quality(HELD_OUT.same, HELD_OUT.other), {
      auc: 0.588,
      found: '4 of 10',
      keptApart: '8 of 8',
    })
  })

  test('is the same everywhere, has the length 1, and is never nothing', async () => {
    const embedder = hashEmbedder({ dimensions: 64 })
    const texts = ['The same text.', 'The same text.', '', '…', 'x'.repeat(50_000), 'Grüße aus Zürich', '数据库备份']
    const vectors = await embedder.embedBatch(texts)
    assert.deepEqual(vectors[0], vectors[1])
    for (const [index, vector] of vectors.entries()) {
      assert.equal(vector.length, 64)
      const length = Math.hypot(...vector)
      assert.ok(Math.abs(length - 1) < 1e-6, `${texts[index]?.slice(0, 20)} has the length ${length}`)
    }
    const [first = []] = vectors
    assert.deepEqual(
      [...first.slice(0, 3)].map((value) => value.toFixed(4)),
      ['0.0000', '0.0000', '0.0000'],
    )
  })

  test('refuses dimensions that are none it can have', () => {
    for (const dimensions of [0, 15, 5_000, 3.5]) {
      assert.throws(() => hashEmbedder({ dimensions }), { code: 'ERR_OPTION_INVALID' })
    }
  })
})
