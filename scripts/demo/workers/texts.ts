/** A thousand short texts about twenty things, and fifty memories of one person: ten facts, each said in five ways. */

const THINGS = [
  ...['the invoice export', 'the login page', 'the nightly backup', 'the search index', 'the mail queue'],
  ...['the payment gateway', 'the image cache', 'the audit log', 'the mobile app', 'the billing report'],
  ...['the staging cluster', 'the webhook receiver', 'the price list', 'the address form', 'the chat widget'],
  ...['the import of orders', 'the tax table', 'the map view', 'the release notes', 'the session store'],
]
const EVENTS = [
  ...['was slow after the deploy', 'failed twice during the night', 'works again since the restart'],
  ...['needs a larger disk', 'shows the wrong time zone'],
]
const REPORTERS = ['Ann', 'Ben', 'Cleo', 'Dario', 'Eve', 'Finn', 'Gita', 'Hugo', 'Iris', 'Jon']

export interface DemoText {
  readonly sourceId: string
  readonly text: string
  readonly thing: string
}

export const TEXTS: readonly DemoText[] = THINGS.flatMap((thing) =>
  EVENTS.flatMap((event) =>
    REPORTERS.map((name, index) => ({
      sourceId: `${thing.replaceAll(' ', '-')}/${event.replaceAll(' ', '-')}/${index}`,
      text: `${name} reports that ${thing} ${event}.`,
      thing,
    })),
  ),
)

/** What is asked, and what the best answers must be about. */
export const QUESTIONS = THINGS.map((thing) => ({ question: `Is there a problem with ${thing}?`, thing }))

const FACTS = [
  'drinks green tea without sugar in the morning',
  'works from the office in Zurich on Tuesdays',
  'prefers short answers with an example in TypeScript',
  'deploys the billing service on Friday afternoons',
  'has two cats named Pixel and Vector',
  'reviews database migrations before every release',
  'learns Italian with a tutor every Wednesday evening',
  'runs the test suite on Postgres and on SQLite',
  'keeps the meeting notes of the platform team',
  'travels by train and never by plane',
]
const WAYS = [
  (fact: string) => `Ann ${fact}.`,
  (fact: string) => `Ann said that she ${fact}.`,
  (fact: string) => `We noted: Ann ${fact}.`,
  (fact: string) => `As before, Ann ${fact}.`,
  (fact: string) => `Ann usually ${fact}.`,
]

export const MEMORIES: readonly string[] = FACTS.flatMap((fact) => WAYS.map((say) => say(fact)))
export const FACT_COUNT = FACTS.length
