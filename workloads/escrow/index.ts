export { presenceAs } from './presence.ts'
export {
  ESCROW_DEFAULT_POLICY,
  ESCROW_TOPICS,
  ESCROW_WORKERS,
  type EscrowPolicy,
  type EscrowTopic,
  type EscrowWorker,
  escrowLagLimits,
  escrowPolicy,
  isFinancialTopic,
} from './topology.ts'
