-- Written by commit e6f61ac.
-- {"01M7MZVDMTPQWFFW9YG976R5DH":"completed","01M7MZVDNG2Z73WVZH5BBQNF3Z":"dead_letter","01M7MZVDNH27PZ2Y4G86TCQYY8":"dead_letter","01M7MZVDNKKJZMTXA9T5NY75P0":"completed","01M7MZVDNTC3YACCW5WXGDWH0A":"superseded","01M7MZVDQPK2GDT0HB7A81414X":"completed","01M7MZVDQV5Y78EYKB80402F92":"completed","01M7MZVDQXC625BACJ9PE0JEXY":"cancelled","01M7MZVDR05HNWRYGMCXWPRG3R":"superseded","01M7MZVDR175GMTDN5ZR4S9QBH":"completed","01M7MZVDR2TXDH475ZXF34CKPT":"completed","01M7MZVDR3JMDM6RDTQQYJA1R2":"completed","01M7MZVDR4VZC2N03WWM6Z9CRF":"completed"}
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO millrace_schema VALUES(1,'job-queue','2026-11-17T14:51:21.001Z');
INSERT INTO millrace_schema VALUES(2,'presence','2026-11-17T14:51:21.001Z');
INSERT INTO millrace_schema VALUES(3,'outbox','2026-11-17T14:51:21.001Z');
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
INSERT INTO job_queue VALUES('01M7MZVDMTPQWFFW9YG976R5DH','recorded','completed',5,'2026-11-17T14:51:21.116Z',NULL,NULL,'{"deed":"fine"}',NULL,1,2,NULL,'2026-11-17T14:51:21.116Z','2026-11-17T14:51:21.160Z','2026-11-17T14:51:21.156Z','2026-11-17T14:51:21.160Z','{"deed":"fine"}',NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,1,'vm:25668:e10311ac',NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVDNG2Z73WVZH5BBQNF3Z','recorded','dead_letter',5,'2026-11-17T14:51:21.170Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:21.136Z','2026-11-17T14:51:21.171Z','2026-11-17T14:51:21.170Z','2026-11-17T14:51:21.171Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/e6f61ac/src/worker/current.ts:42:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/e6f61ac/src/worker/current.ts:36:27)\n    at #call (file:///tmp/upg/old/e6f61ac/src/worker/execution.ts:116:54)\n    at #run (file:///tmp/upg/old/e6f61ac/src/worker/execution.ts:86:15)\n    at Execution.start (file:///tmp/upg/old/e6…"}',NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVDNH27PZ2Y4G86TCQYY8','recorded','dead_letter',5,'2026-11-17T14:51:21.170Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:21.137Z','2026-11-17T14:51:21.171Z','2026-11-17T14:51:21.170Z','2026-11-17T14:51:21.171Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/e6f61ac/src/worker/current.ts:42:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/e6f61ac/src/worker/current.ts:36:27)\n    at #call (file:///tmp/upg/old/e6f61ac/src/worker/execution.ts:116:54)\n    at #run (file:///tmp/upg/old/e6f61ac/src/worker/execution.ts:86:15)\n    at Execution.start (file:///tmp/upg/old/e6…"}','dead-key',0,NULL);
INSERT INTO job_queue VALUES('01M7MZVDNKKJZMTXA9T5NY75P0','recorded','in_progress',5,'2026-11-17T14:51:21.139Z','vm:25668:e10311ac','2026-11-17T14:52:21.156Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:21.139Z','2026-11-17T14:51:21.156Z','2026-11-17T14:51:21.156Z',NULL,NULL,'BmLVUiyeKr81',0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVDNTC3YACCW5WXGDWH0A','recorded','in_progress',5,'2026-11-17T14:51:21.146Z','vm:25668:e10311ac','2026-11-17T14:52:21.160Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:21.146Z','2026-11-17T14:51:21.160Z','2026-11-17T14:51:21.160Z',NULL,NULL,'EptyEBwTDmpL',0,'document-1',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVDQPK2GDT0HB7A81414X','later','queued',1,'2026-11-17T14:51:21.207Z',NULL,NULL,'{"n":1}','live-key',0,3,NULL,'2026-11-17T14:51:21.207Z','2026-11-17T14:51:21.207Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVDQV5Y78EYKB80402F92','later','queued',5,'2026-11-17T14:52:21.211Z',NULL,NULL,'{"n":2}',NULL,0,3,NULL,'2026-11-17T14:51:21.211Z','2026-11-17T14:51:21.211Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVDQXC625BACJ9PE0JEXY','later','dead_letter',5,'2026-11-17T14:51:21.214Z',NULL,NULL,'{"n":3}',NULL,0,3,NULL,'2026-11-17T14:51:21.214Z','2026-11-17T14:51:21.215Z',NULL,'2026-11-17T14:51:21.215Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'cancelled');
INSERT INTO job_queue VALUES('01M7MZVDR175GMTDN5ZR4S9QBH','later','queued',5,'2026-11-17T14:51:21.216Z',NULL,NULL,'{"n":5}',NULL,0,3,NULL,'2026-11-17T14:51:21.217Z','2026-11-17T14:51:21.217Z',NULL,NULL,NULL,NULL,0,'document-2',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVDR05HNWRYGMCXWPRG3R','later','dead_letter',5,'2026-11-17T14:51:21.216Z',NULL,NULL,'{"n":4}',NULL,0,3,NULL,'2026-11-17T14:51:21.216Z','2026-11-17T14:51:21.217Z',NULL,'2026-11-17T14:51:21.217Z',NULL,NULL,0,'document-2',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'superseded');
INSERT INTO job_queue VALUES('01M7MZVDR2TXDH475ZXF34CKPT','recorded','queued',5,'2026-11-17T14:51:21.218Z',NULL,NULL,'{"deed":"fine"}',NULL,0,2,NULL,'2026-11-17T14:51:21.218Z','2026-11-17T14:51:21.218Z',NULL,NULL,NULL,NULL,1,'document-1',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVDR3JMDM6RDTQQYJA1R2','later','queued',5,'2026-11-17T14:52:21.219Z',NULL,NULL,'{"n":6}',NULL,0,3,NULL,'2026-11-17T14:51:21.219Z','2026-11-17T14:51:21.219Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVDR4VZC2N03WWM6Z9CRF','later','queued',5,'2026-11-17T14:51:21.220Z',NULL,NULL,'{"n":7}',NULL,0,3,NULL,'2026-11-17T14:51:21.220Z','2026-11-17T14:51:21.220Z',NULL,NULL,NULL,NULL,1,NULL,NULL,'{"ids":["01M7MZVDR3JMDM6RDTQQYJA1R2"],"ifDead":"wait"}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE job_events (
  seq INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  at TEXT NOT NULL,
  name TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT,
  detail TEXT
);
INSERT INTO job_events VALUES(1,'01M7MZVDNG2Z73WVZH5BBQNF3Z','2026-11-17T14:51:21.160Z','failed',1,'vm:25668:e10311ac','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927081156}');
INSERT INTO job_events VALUES(2,'01M7MZVDNG2Z73WVZH5BBQNF3Z','2026-11-17T14:51:21.160Z','retried',1,'vm:25668:e10311ac','{"delayMs":10}');
INSERT INTO job_events VALUES(3,'01M7MZVDNH27PZ2Y4G86TCQYY8','2026-11-17T14:51:21.160Z','failed',1,'vm:25668:e10311ac','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927081156}');
INSERT INTO job_events VALUES(4,'01M7MZVDNH27PZ2Y4G86TCQYY8','2026-11-17T14:51:21.160Z','retried',1,'vm:25668:e10311ac','{"delayMs":10}');
INSERT INTO job_events VALUES(5,'01M7MZVDNG2Z73WVZH5BBQNF3Z','2026-11-17T14:51:21.171Z','failed',2,'vm:25668:e10311ac','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927081170}');
INSERT INTO job_events VALUES(6,'01M7MZVDNG2Z73WVZH5BBQNF3Z','2026-11-17T14:51:21.171Z','dead',2,'vm:25668:e10311ac',NULL);
INSERT INTO job_events VALUES(7,'01M7MZVDNH27PZ2Y4G86TCQYY8','2026-11-17T14:51:21.171Z','failed',2,'vm:25668:e10311ac','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927081170}');
INSERT INTO job_events VALUES(8,'01M7MZVDNH27PZ2Y4G86TCQYY8','2026-11-17T14:51:21.171Z','dead',2,'vm:25668:e10311ac',NULL);
INSERT INTO job_events VALUES(9,'01M7MZVDQXC625BACJ9PE0JEXY','2026-11-17T14:51:21.215Z','cancelled',0,NULL,'{"who":"ann","reason":"recorded","startedAtMs":null}');
INSERT INTO job_events VALUES(10,'01M7MZVDR05HNWRYGMCXWPRG3R','2026-11-17T14:51:21.217Z','superseded',0,NULL,'{"by":"01M7MZVDR175GMTDN5ZR4S9QBH"}');
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
INSERT INTO job_after VALUES('01M7MZVDR3JMDM6RDTQQYJA1R2','01M7MZVDR4VZC2N03WWM6Z9CRF','wait',1);
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
, subject TEXT);
INSERT INTO job_audit VALUES(1,'2026-11-17T14:51:21.228Z','ann','recorded','pause','','paused','{}',NULL,NULL);
CREATE TABLE millrace_schedules (
  name TEXT PRIMARY KEY,
  revision TEXT NOT NULL,
  next_at_ms INTEGER,
  body TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_schedules VALUES('nightly','81daffc1-698a-4c81-b71a-17d064567432',1794970800000,'{"cron":"0 3 * * *","tz":"UTC","startMs":null,"endMs":null,"limit":null,"missed":"one","overlap":"skip","payload":{"n":8},"options":{},"type":"later","defaults":null,"paused":false,"runs":0,"skips":0,"lastTickMs":null,"lastJobId":null,"declared":null}');
CREATE TABLE millrace_leaders (
  office TEXT PRIMARY KEY,
  holder TEXT,
  number INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_leaders VALUES('keeper:reap+schedules+retention','vm:25668:e10311ac',1,7500,1794927088652);
CREATE TABLE job_starts (
  type TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  starts INTEGER NOT NULL
);
CREATE TABLE millrace_presence (
  worker TEXT NOT NULL,
  type TEXT NOT NULL,
  beat TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL,
  PRIMARY KEY (worker, type)
) WITHOUT ROWID;
INSERT INTO millrace_presence VALUES('vm:25668:e10311ac','recorded','{"timestamp":"2026-11-17T14:51:21.152Z","status":"RUNNING","last_message_at":null,"consumer_lag":null,"work":{"host":"vm","pid":25668,"startedAtMs":1794927081150,"concurrency":4,"running":0,"jobs":[]}}',1794927081152,1794927111152);
CREATE TABLE millrace_pauses (
  type TEXT PRIMARY KEY,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  since_ms INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_pauses VALUES('paused','ann','recorded',1794927081227);
CREATE TABLE millrace_outbox (
  seq INTEGER PRIMARY KEY,
  outbox TEXT NOT NULL,
  id TEXT NOT NULL,
  job TEXT NOT NULL,
  added_at_ms INTEGER NOT NULL
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
CREATE INDEX idx_millrace_outbox_order ON millrace_outbox(outbox, seq);
COMMIT;

