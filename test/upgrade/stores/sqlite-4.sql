-- Written by commit 4649c73.
-- {"01M7MZVG01YZB36QY80F046AE9":"completed","01M7MZVG04R3H6E9KVZ98SDPXQ":"dead_letter","01M7MZVG05WSZSZ9TCDAFW2KM9":"dead_letter","01M7MZVG06VCBV59Y4W3AY9048":"completed","01M7MZVG07B4Y19ZTTKBD7TX7T":"superseded","01M7MZVG53T21R3NWREM12VNGR":"completed","01M7MZVG7AX7NR1K4TNGSPBY66":"completed","01M7MZVG7P5ER828ZARZZ21032":"cancelled","01M7MZVGA36ATB8EVM9W1CS22R":"superseded","01M7MZVGA9JG24Y4QP359HFWDP":"completed","01M7MZVGBNPF70FBM7QRY63MNS":"completed","01M7MZVGBZEGJXQH82MFCRPT32":"completed","01M7MZVGC64QWWNJ2BBJNWCFA9":"completed"}
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO millrace_schema VALUES(1,'job-queue','2026-11-17T14:51:23.503Z');
INSERT INTO millrace_schema VALUES(2,'presence','2026-11-17T14:51:23.503Z');
INSERT INTO millrace_schema VALUES(3,'outbox','2026-11-17T14:51:23.503Z');
INSERT INTO millrace_schema VALUES(4,'clock','2026-11-17T14:51:23.503Z');
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
INSERT INTO job_queue VALUES('01M7MZVG01YZB36QY80F046AE9','recorded','completed',5,'2026-11-17T14:51:23.524Z',NULL,NULL,'{"deed":"fine"}',NULL,1,2,NULL,'2026-11-17T14:51:23.524Z','2026-11-17T14:51:23.601Z','2026-11-17T14:51:23.571Z','2026-11-17T14:51:23.601Z','{"deed":"fine"}',NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,1,'vm:25723:6abd3ffb',NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVG04R3H6E9KVZ98SDPXQ','recorded','dead_letter',5,'2026-11-17T14:51:23.611Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:23.525Z','2026-11-17T14:51:23.652Z','2026-11-17T14:51:23.631Z','2026-11-17T14:51:23.652Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/4649c73/src/worker/current.ts:42:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/4649c73/src/worker/current.ts:36:27)\n    at #call (file:///tmp/upg/old/4649c73/src/worker/execution.ts:116:54)\n    at #run (file:///tmp/upg/old/4649c73/src/worker/execution.ts:86:15)\n    at Execution.start (file:///tmp/upg/old/..."}',NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVG05WSZSZ9TCDAFW2KM9','recorded','dead_letter',5,'2026-11-17T14:51:23.611Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:51:23.525Z','2026-11-17T14:51:23.652Z','2026-11-17T14:51:23.631Z','2026-11-17T14:51:23.652Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/4649c73/src/worker/current.ts:42:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/4649c73/src/worker/current.ts:36:27)\n    at #call (file:///tmp/upg/old/4649c73/src/worker/execution.ts:116:54)\n    at #run (file:///tmp/upg/old/4649c73/src/worker/execution.ts:86:15)\n    at Execution.start (file:///tmp/upg/old/..."}','dead-key',0,NULL);
INSERT INTO job_queue VALUES('01M7MZVG06VCBV59Y4W3AY9048','recorded','in_progress',5,'2026-11-17T14:51:23.526Z','vm:25723:6abd3ffb','2026-11-17T14:52:23.571Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:23.526Z','2026-11-17T14:51:23.571Z','2026-11-17T14:51:23.571Z',NULL,NULL,'fN0k4gtbjWEm',0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVG07B4Y19ZTTKBD7TX7T','recorded','in_progress',5,'2026-11-17T14:51:23.527Z','vm:25723:6abd3ffb','2026-11-17T14:52:23.602Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:51:23.527Z','2026-11-17T14:51:23.602Z','2026-11-17T14:51:23.602Z',NULL,NULL,'5Iy-8uJrdx0w',0,'document-1',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVG53T21R3NWREM12VNGR','later','queued',1,'2026-11-17T14:51:23.683Z',NULL,NULL,'{"n":1}','live-key',0,3,NULL,'2026-11-17T14:51:23.683Z','2026-11-17T14:51:23.683Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVG7AX7NR1K4TNGSPBY66','later','queued',5,'2026-11-17T14:52:23.754Z',NULL,NULL,'{"n":2}',NULL,0,3,NULL,'2026-11-17T14:51:23.754Z','2026-11-17T14:51:23.754Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVG7P5ER828ZARZZ21032','later','dead_letter',5,'2026-11-17T14:51:23.766Z',NULL,NULL,'{"n":3}',NULL,0,3,NULL,'2026-11-17T14:51:23.766Z','2026-11-17T14:51:23.775Z',NULL,'2026-11-17T14:51:23.775Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'cancelled');
INSERT INTO job_queue VALUES('01M7MZVGA9JG24Y4QP359HFWDP','later','queued',5,'2026-11-17T14:51:23.844Z',NULL,NULL,'{"n":5}',NULL,0,3,NULL,'2026-11-17T14:51:23.850Z','2026-11-17T14:51:23.850Z',NULL,NULL,NULL,NULL,0,'document-2',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVGA36ATB8EVM9W1CS22R','later','dead_letter',5,'2026-11-17T14:51:23.844Z',NULL,NULL,'{"n":4}',NULL,0,3,NULL,'2026-11-17T14:51:23.844Z','2026-11-17T14:51:23.850Z',NULL,'2026-11-17T14:51:23.850Z',NULL,NULL,0,'document-2',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'superseded');
INSERT INTO job_queue VALUES('01M7MZVGBNPF70FBM7QRY63MNS','recorded','queued',5,'2026-11-17T14:51:23.894Z',NULL,NULL,'{"deed":"fine"}',NULL,0,2,NULL,'2026-11-17T14:51:23.894Z','2026-11-17T14:51:23.894Z',NULL,NULL,NULL,NULL,1,'document-1',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVGBZEGJXQH82MFCRPT32','later','queued',5,'2026-11-17T14:52:23.904Z',NULL,NULL,'{"n":6}',NULL,0,3,NULL,'2026-11-17T14:51:23.904Z','2026-11-17T14:51:23.904Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZVGC64QWWNJ2BBJNWCFA9','later','queued',5,'2026-11-17T14:51:23.910Z',NULL,NULL,'{"n":7}',NULL,0,3,NULL,'2026-11-17T14:51:23.910Z','2026-11-17T14:51:23.910Z',NULL,NULL,NULL,NULL,1,NULL,NULL,'{"ids":["01M7MZVGBZEGJXQH82MFCRPT32"],"ifDead":"wait"}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE job_events (
  seq INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  at TEXT NOT NULL,
  name TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT,
  detail TEXT
);
INSERT INTO job_events VALUES(1,'01M7MZVG04R3H6E9KVZ98SDPXQ','2026-11-17T14:51:23.601Z','failed',1,'vm:25723:6abd3ffb','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927083571}');
INSERT INTO job_events VALUES(2,'01M7MZVG04R3H6E9KVZ98SDPXQ','2026-11-17T14:51:23.601Z','retried',1,'vm:25723:6abd3ffb','{"delayMs":10}');
INSERT INTO job_events VALUES(3,'01M7MZVG05WSZSZ9TCDAFW2KM9','2026-11-17T14:51:23.601Z','failed',1,'vm:25723:6abd3ffb','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927083571}');
INSERT INTO job_events VALUES(4,'01M7MZVG05WSZSZ9TCDAFW2KM9','2026-11-17T14:51:23.601Z','retried',1,'vm:25723:6abd3ffb','{"delayMs":10}');
INSERT INTO job_events VALUES(5,'01M7MZVG04R3H6E9KVZ98SDPXQ','2026-11-17T14:51:23.652Z','failed',2,'vm:25723:6abd3ffb','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927083631}');
INSERT INTO job_events VALUES(6,'01M7MZVG04R3H6E9KVZ98SDPXQ','2026-11-17T14:51:23.652Z','dead',2,'vm:25723:6abd3ffb',NULL);
INSERT INTO job_events VALUES(7,'01M7MZVG05WSZSZ9TCDAFW2KM9','2026-11-17T14:51:23.652Z','failed',2,'vm:25723:6abd3ffb','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794927083631}');
INSERT INTO job_events VALUES(8,'01M7MZVG05WSZSZ9TCDAFW2KM9','2026-11-17T14:51:23.652Z','dead',2,'vm:25723:6abd3ffb',NULL);
INSERT INTO job_events VALUES(9,'01M7MZVG7P5ER828ZARZZ21032','2026-11-17T14:51:23.775Z','cancelled',0,NULL,'{"who":"ann","reason":"recorded","startedAtMs":null}');
INSERT INTO job_events VALUES(10,'01M7MZVGA36ATB8EVM9W1CS22R','2026-11-17T14:51:23.850Z','superseded',0,NULL,'{"by":"01M7MZVGA9JG24Y4QP359HFWDP"}');
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
INSERT INTO job_after VALUES('01M7MZVGBZEGJXQH82MFCRPT32','01M7MZVGC64QWWNJ2BBJNWCFA9','wait',1);
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
INSERT INTO job_audit VALUES(1,'2026-11-17T14:51:23.958Z','ann','recorded','pause','','paused','{}',NULL,NULL);
CREATE TABLE millrace_schedules (
  name TEXT PRIMARY KEY,
  revision TEXT NOT NULL,
  next_at_ms INTEGER,
  body TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_schedules VALUES('nightly','ac8dba45-aa7d-4122-9c42-55f9d66b3239',1794970800000,'{"cron":"0 3 * * *","tz":"UTC","startMs":null,"endMs":null,"limit":null,"missed":"one","overlap":"skip","payload":{"n":8},"options":{},"type":"later","defaults":null,"paused":false,"runs":0,"skips":0,"missedTicks":0,"lastTickMs":null,"lastJobId":null,"declared":null}');
CREATE TABLE millrace_leaders (
  office TEXT PRIMARY KEY,
  holder TEXT,
  number INTEGER NOT NULL,
  lease_ms INTEGER NOT NULL,
  until_ms INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_leaders VALUES('keeper:reap+schedules+retention','vm:25723:6abd3ffb',1,7500,1794927091040);
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
INSERT INTO millrace_presence VALUES('vm:25723:6abd3ffb','recorded','{"timestamp":"2026-11-17T14:51:23.533Z","status":"RUNNING","last_message_at":null,"consumer_lag":null,"work":{"host":"vm","pid":25723,"process":"b68577cb-8d62-4a9b-9ff7-e6014bce9108","startedAtMs":1794927083531,"concurrency":4,"running":0,"jobs":[]}}',1794927083533,1794927113540);
CREATE TABLE millrace_pauses (
  type TEXT PRIMARY KEY,
  who TEXT NOT NULL,
  reason TEXT NOT NULL,
  since_ms INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO millrace_pauses VALUES('paused','ann','recorded',1794927083945);
CREATE TABLE millrace_outbox (
  seq INTEGER PRIMARY KEY,
  outbox TEXT NOT NULL,
  id TEXT NOT NULL,
  job TEXT NOT NULL,
  added_at_ms INTEGER NOT NULL
);
CREATE TABLE millrace_clock (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  timeline TEXT NOT NULL,
  offset_ms REAL NOT NULL,
  stepped_at_ms INTEGER,
  step_ms INTEGER
);
INSERT INTO millrace_clock VALUES(1,'linux 4ef89e37-72c4-4c74-8862-a966e4a15b74 time:[4026531834]',1794923135394.8754883,NULL,NULL);
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

