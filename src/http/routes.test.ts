import { ENGINES, runCases } from '../../test/fixtures/admin.ts'
import { CASES } from '../../test/http/cases/index.ts'

for (const url of ENGINES) runCases(url, CASES, async () => ({ url, drop: async () => {} }))
