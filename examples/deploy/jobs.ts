/** What a supervised worker runs: any module that exports jobs with handlers. */
import { setTimeout as sleep } from 'node:timers/promises'
import { defineJob } from 'millrace'

export const tidy = defineJob({
  type: 'tidy',
  async run({ signal }) {
    await sleep(500, null, { signal })
    return 'tidied'
  },
})
