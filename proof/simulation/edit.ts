import type { PayloadEdit } from '../../src/engine/dead-letters.ts'
import type { JobView } from '../../src/job/job.ts'
import type { Client } from '../workload/client.ts'
import type { Behaviour } from '../workload/operation.ts'

/**
 * Replays the newest letter with another plan, as the desk does it, but for the hashes of its note: they take tens of
 * milliseconds in another thread, which would be neither fast nor the same each time.
 */
export async function editNewest(client: Client, behaviours: readonly Behaviour[]): Promise<void> {
  const { deadLetters } = client.mill.engine
  const [letter] = (await client.try('a list of dead letters', async () => deadLetters?.list({ limit: 1 }))) ?? []
  if (letter === undefined) return
  const { job } = letter
  const edit = editOf(job, behaviours)
  await client.try(`the act 'edit' at the desk`, async () => deadLetters?.requeue([job.id], client.by('edit'), edit))
}

function editOf({ payload, payloadVersion }: JobView, behaviours: readonly Behaviour[]): PayloadEdit {
  const { steps, ...rest }: Readonly<Record<string, unknown>> = { ...Object(JSON.parse(payload)) }
  const edited = steps === undefined ? { ...rest, behaviours } : { ...rest, steps: behaviours }
  const note = { before: 'as it was', after: 'edited', changed: [], unnamed: 0 }
  return { payload: JSON.stringify(edited), payloadVersion, replaces: payload, note }
}
