export { type Found, Paced } from './paced.ts'
export {
  type HistoryPoint,
  type Overview,
  type Sample,
  Sampler,
  type SamplingOptions,
  startSampling,
} from './sampler.ts'
