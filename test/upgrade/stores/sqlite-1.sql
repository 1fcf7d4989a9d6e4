-- Written by commit 592102d.
-- {"01M7MZ8JBF9BKNK2C6ZEHNMA8H":"completed","01M7MZ8JD0ZHV2MCA21DGYKZQ1":"dead_letter","01M7MZ8JEB2AWJ6E48H3RR1T8H":"dead_letter","01M7MZ8JEE9M12Q147T66KA5Y4":"completed","01M7MZ8JNKP6XMCQJ6V3A61Z0Q":"completed","01M7MZ8JPPM4QH7H017B996CZR":"completed","01M7MZ8JSX314240375D61C78A":"cancelled","01M7MZ8JYZ1ND55162DHXYDX1S":"superseded","01M7MZ8K15XXZY0DM1R30X19YW":"completed","01M7MZ8K3C66CRG8ZY71BKWKSD":"completed","01M7MZ8K4ZYWMB9XA85Q4FNNEX":"completed","01M7MZ8K5XA0P28M2BRZ7KBDN9":"completed"}
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO millrace_schema VALUES(1,'job-queue','2026-11-17T14:41:03.302Z');
CREATE TABLE job_queue (
  id TEXT PRIMARY KEY,
  type TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'queued' CHECK (status IN ('queued', 'in_progress', 'completed', 'failed', 'dead_letter')),
  priority INTEGER NOT NULL DEFAULT 5 CHECK (priority >= 1 AND priority <= 10),
  scheduled_at TEXT NOT NULL,
  lease_owner TEXT,
  lease_until TEXT,
  payload TEXT NOT NULL,
  idempotency_key TEXT UNIQUE,
  attempts INTEGER NOT NULL DEFAULT 0,
  max_retries INTEGER NOT NULL DEFAULT 3,
  error TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  started_at TEXT,
  completed_at TEXT,
  result TEXT
, lease_token TEXT, waiting_for INTEGER NOT NULL DEFAULT 0, latest_key TEXT, latest_seq INTEGER, predecessors TEXT, tenant TEXT, options TEXT, payload_version INTEGER NOT NULL DEFAULT 1, progress TEXT, duration_ms INTEGER, completed_by TEXT, error_record TEXT, released_key TEXT, replays INTEGER NOT NULL DEFAULT 0, ended TEXT CHECK (ended IN ('cancelled', 'superseded', 'discarded')));
INSERT INTO job_queue VALUES('01M7MZ8JBF9BKNK2C6ZEHNMA8H','recorded','completed',5,'2026-11-17T14:41:03.345Z',NULL,NULL,'{"deed":"fine"}',NULL,1,2,NULL,'2026-11-17T14:41:03.345Z','2026-11-17T14:41:03.549Z','2026-11-17T14:41:03.487Z','2026-11-17T14:41:03.549Z','{"deed":"fine"}',NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,59,'vm:11492:767e817b',NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8JD0ZHV2MCA21DGYKZQ1','recorded','dead_letter',5,'2026-11-17T14:41:03.559Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:41:03.392Z','2026-11-17T14:41:03.588Z','2026-11-17T14:41:03.587Z','2026-11-17T14:41:03.588Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at AsyncLocalStorage.run (node:internal/async_local_storage/async_context_frame:65:14)\n    at runAsCurrent (file:///tmp/upg/old/592102d/src/worker/current.ts:22:18)\n    at #run (file:///tmp/upg/old/592102d/src/worker/execution.ts:77:28)"}',NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8JEB2AWJ6E48H3RR1T8H','recorded','dead_letter',5,'2026-11-17T14:41:03.559Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:41:03.436Z','2026-11-17T14:41:03.588Z','2026-11-17T14:41:03.587Z','2026-11-17T14:41:03.588Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at AsyncLocalStorage.run (node:internal/async_local_storage/async_context_frame:65:14)\n    at runAsCurrent (file:///tmp/upg/old/592102d/src/worker/current.ts:22:18)\n    at #run (file:///tmp/upg/old/592102d/src/worker/execution.ts:77:28)"}','dead-key',0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8JEE9M12Q147T66KA5Y4','recorded','in_progress',5,'2026-11-17T14:41:03.438Z','vm:11492:767e817b','2026-11-17T14:42:03.487Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:41:03.438Z','2026-11-17T14:41:03.487Z','2026-11-17T14:41:03.487Z',NULL,NULL,'W9GFUkI4wSgQ',0,'document-1',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8JNKP6XMCQJ6V3A61Z0Q','later','queued',1,'2026-11-17T14:41:03.668Z',NULL,NULL,'{"n":1}','live-key',0,3,NULL,'2026-11-17T14:41:03.668Z','2026-11-17T14:41:03.668Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8JPPM4QH7H017B996CZR','later','queued',5,'2026-11-17T14:42:03.702Z',NULL,NULL,'{"n":2}',NULL,0,3,NULL,'2026-11-17T14:41:03.702Z','2026-11-17T14:41:03.702Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8JSX314240375D61C78A','later','dead_letter',5,'2026-11-17T14:41:03.805Z',NULL,NULL,'{"n":3}',NULL,0,3,NULL,'2026-11-17T14:41:03.805Z','2026-11-17T14:41:03.836Z',NULL,'2026-11-17T14:41:03.836Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'cancelled');
INSERT INTO job_queue VALUES('01M7MZ8K15XXZY0DM1R30X19YW','later','queued',5,'2026-11-17T14:41:03.968Z',NULL,NULL,'{"n":5}',NULL,0,3,NULL,'2026-11-17T14:41:04.069Z','2026-11-17T14:41:04.069Z',NULL,NULL,NULL,NULL,0,'document-2',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8JYZ1ND55162DHXYDX1S','later','dead_letter',5,'2026-11-17T14:41:03.968Z',NULL,NULL,'{"n":4}',NULL,0,3,NULL,'2026-11-17T14:41:03.968Z','2026-11-17T14:41:04.069Z',NULL,'2026-11-17T14:41:04.069Z',NULL,NULL,0,'document-2',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'superseded');
INSERT INTO job_queue VALUES('01M7MZ8K3C66CRG8ZY71BKWKSD','recorded','queued',5,'2026-11-17T14:41:04.108Z',NULL,NULL,'{"deed":"fine"}',NULL,0,2,NULL,'2026-11-17T14:41:04.108Z','2026-11-17T14:41:04.108Z',NULL,NULL,NULL,NULL,1,'document-1',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8K4ZYWMB9XA85Q4FNNEX','later','queued',5,'2026-11-17T14:42:04.159Z',NULL,NULL,'{"n":6}',NULL,0,3,NULL,'2026-11-17T14:41:04.159Z','2026-11-17T14:41:04.159Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ8K5XA0P28M2BRZ7KBDN9','later','queued',5,'2026-11-17T14:41:04.189Z',NULL,NULL,'{"n":7}',NULL,0,3,NULL,'2026-11-17T14:41:04.189Z','2026-11-17T14:41:04.189Z',NULL,NULL,NULL,NULL,1,NULL,NULL,'{"ids":["01M7MZ8K4ZYWMB9XA85Q4FNNEX"],"ifDead":"wait"}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE job_events (
  seq INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  at TEXT NOT NULL,
  name TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT,
  detail TEXT
);
INSERT INTO job_events VALUES(1,'01M7MZ8JD0ZHV2MCA21DGYKZQ1','2026-11-17T14:41:03.549Z','failed',1,'vm:11492:767e817b','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794926463487}');
INSERT INTO job_events VALUES(2,'01M7MZ8JD0ZHV2MCA21DGYKZQ1','2026-11-17T14:41:03.549Z','retried',1,'vm:11492:767e817b','{"delayMs":10}');
INSERT INTO job_events VALUES(3,'01M7MZ8JEB2AWJ6E48H3RR1T8H','2026-11-17T14:41:03.549Z','failed',1,'vm:11492:767e817b','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794926463487}');
INSERT INTO job_events VALUES(4,'01M7MZ8JEB2AWJ6E48H3RR1T8H','2026-11-17T14:41:03.549Z','retried',1,'vm:11492:767e817b','{"delayMs":10}');
INSERT INTO job_events VALUES(5,'01M7MZ8JD0ZHV2MCA21DGYKZQ1','2026-11-17T14:41:03.588Z','failed',2,'vm:11492:767e817b','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794926463587}');
INSERT INTO job_events VALUES(6,'01M7MZ8JD0ZHV2MCA21DGYKZQ1','2026-11-17T14:41:03.588Z','dead',2,'vm:11492:767e817b',NULL);
INSERT INTO job_events VALUES(7,'01M7MZ8JEB2AWJ6E48H3RR1T8H','2026-11-17T14:41:03.588Z','failed',2,'vm:11492:767e817b','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794926463587}');
INSERT INTO job_events VALUES(8,'01M7MZ8JEB2AWJ6E48H3RR1T8H','2026-11-17T14:41:03.588Z','dead',2,'vm:11492:767e817b',NULL);
INSERT INTO job_events VALUES(9,'01M7MZ8JSX314240375D61C78A','2026-11-17T14:41:03.836Z','cancelled',0,NULL,'{"who":"ann","reason":"recorded","startedAtMs":null}');
INSERT INTO job_events VALUES(10,'01M7MZ8JYZ1ND55162DHXYDX1S','2026-11-17T14:41:04.069Z','superseded',0,NULL,'{"by":"01M7MZ8K15XXZY0DM1R30X19YW"}');
CREATE TABLE job_latest (
  type TEXT NOT NULL,
  latest_key TEXT NOT NULL,
  seq INTEGER NOT NULL,
  PRIMARY KEY (type, latest_key)
) WITHOUT ROWID;
INSERT INTO job_latest VALUES('later','document-2',2);
INSERT INTO job_latest VALUES('recorded','document-1',2);
CREATE TABLE job_after (
  after_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  if_dead TEXT NOT NULL,
  held INTEGER NOT NULL,
  PRIMARY KEY (after_id, job_id)
) WITHOUT ROWID;
INSERT INTO job_after VALUES('01M7MZ8K4ZYWMB9XA85Q4FNNEX','01M7MZ8K5XA0P28M2BRZ7KBDN9','wait',1);
CREATE TABLE job_audit (
  seq INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  action TEXT NOT NULL,
  job_id TEXT NOT NULL,
  type TEXT NOT NULL,
  before TEXT NOT NULL,
  after TEXT
);
CREATE TABLE millrace_schedules (
  name TEXT PRIMARY KEY,
  revision TEXT NOT NULL,
  next_at_ms INTEGER,
  body TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_schedules VALUES('nightly','a0f79a96-1c91-4024-badc-1ac2695b4388',1794970800000,'{"cron":"0 3 * * *","tz":"UTC","startMs":null,"endMs":null,"limit":null,"missed":"one","overlap":"skip","payload":{"n":8},"options":{},"type":"later","defaults":null,"paused":false,"runs":0,"skips":0,"lastTickMs":null,"lastJobId":null,"declared":null}');
CREATE TABLE millrace_leaders (
  office TEXT PRIMARY KEY,
  holder TEXT,
  number INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_leaders VALUES('keeper:reap+schedules+retention','vm:11492:767e817b',1,7500,1794926470987);
CREATE TABLE job_starts (
  type TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  starts INTEGER NOT NULL
);
CREATE INDEX idx_job_queue_dequeue ON job_queue(status, priority, scheduled_at) WHERE status = 'queued';
CREATE INDEX idx_job_queue_lease_expiry ON job_queue(lease_until) WHERE status = 'in_progress';
CREATE INDEX idx_job_queue_type ON job_queue(type, status);
CREATE INDEX idx_job_queue_idempotency ON job_queue(idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX idx_job_queue_claim ON job_queue(type, priority, scheduled_at)
  WHERE status = 'queued' AND waiting_for = 0;
CREATE INDEX idx_job_queue_latest ON job_queue(type, latest_key, status) WHERE latest_key IS NOT NULL;
CREATE INDEX idx_job_queue_dead ON job_queue(completed_at, id, type)
  WHERE status = 'dead_letter' AND ended IS NULL;
CREATE TRIGGER job_queue_updated_at
AFTER UPDATE OF id, type, status, priority, scheduled_at, lease_owner, lease_until, payload, idempotency_key, attempts,
  max_retries, error, created_at, started_at, completed_at, result ON job_queue
FOR EACH ROW WHEN NEW.updated_at IS OLD.updated_at AND NEW.lease_token IS OLD.lease_token
BEGIN
  UPDATE job_queue SET updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE rowid = NEW.rowid;
END;
CREATE INDEX idx_job_events_job ON job_events(job_id, seq);
CREATE INDEX idx_job_after_job ON job_after(job_id, held);
CREATE INDEX idx_job_audit_job ON job_audit(job_id, seq);
CREATE TRIGGER job_audit_kept BEFORE DELETE ON job_audit
BEGIN SELECT RAISE(ABORT, 'job_audit is append-only'); END;
CREATE TRIGGER job_audit_unchanged BEFORE UPDATE ON job_audit
BEGIN SELECT RAISE(ABORT, 'job_audit is append-only'); END;
CREATE INDEX idx_job_starts_type ON job_starts(type, at_ms);
COMMIT;

