import { EngineError } from '../errors.ts'

/** Somebody else changes a schedule between a look and a save once in a while; never so often in a row. */
export const SAVE_TRIES = 20

export function busy(name: string): EngineError {
  return new EngineError('ERR_STORAGE_BUSY', `the schedule '${name}' was changed by others all the time; try again`)
}
