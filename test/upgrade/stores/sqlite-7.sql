-- Written by commit 2909923.
-- {"01M7MZ92C3TP7828CQ7SMEJTHF":"completed","01M7MZ92CXYAG871JNCWTEVRYJ":"dead_letter","01M7MZ92D3G2GNA3D8T4YP83MN":"dead_letter","01M7MZ92EZ76BD3T0EXY68YVKP":"completed","01M7MZ92V37BVFDWXXS4K3REPG":"completed","01M7MZ92VZD51E20YMDKD58S4B":"completed","01M7MZ92WGFY1XA6S7TBK64NQG":"cancelled","01M7MZ92Y1Y134FSY2P89F773N":"superseded","01M7MZ92YQM040QT4RWSV09YNS":"completed","01M7MZ92Z3K3HVKNX94MC2N9F4":"completed","01M7MZ92Z57TEGW6A5S1YSFE6W":"completed","01M7MZ9324NPJE9V1MYJJXA1TR":"completed"}
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE millrace_schema (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);
INSERT INTO millrace_schema VALUES(1,'job-queue','2026-11-17T14:41:19.619Z');
INSERT INTO millrace_schema VALUES(2,'presence','2026-11-17T14:41:19.619Z');
INSERT INTO millrace_schema VALUES(3,'outbox','2026-11-17T14:41:19.619Z');
INSERT INTO millrace_schema VALUES(4,'clock','2026-11-17T14:41:19.619Z');
INSERT INTO millrace_schema VALUES(5,'latest-keys','2026-11-17T14:41:19.619Z');
INSERT INTO millrace_schema VALUES(6,'records','2026-11-17T14:41:19.619Z');
INSERT INTO millrace_schema VALUES(7,'ended-jobs','2026-11-17T14:41:19.619Z');
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
INSERT INTO job_queue VALUES('01M7MZ92C3TP7828CQ7SMEJTHF','recorded','completed',5,'2026-11-17T14:41:19.760Z',NULL,NULL,'{"deed":"fine"}',NULL,1,2,NULL,'2026-11-17T14:41:19.760Z','2026-11-17T14:41:20.099Z','2026-11-17T14:41:20.036Z','2026-11-17T14:41:20.099Z','{"deed":"fine"}',NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,1,'vm:11945:1753e155',NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ92CXYAG871JNCWTEVRYJ','recorded','dead_letter',5,'2026-11-17T14:41:20.109Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:41:19.774Z','2026-11-17T14:41:20.166Z','2026-11-17T14:41:20.121Z','2026-11-17T14:41:20.166Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/2909923/src/worker/context.ts:105:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/2909923/src/worker/context.ts:99:27)\n    at #call (file:///tmp/upg/old/2909923/src/worker/execution.ts:114:54)\n    at #run (file:///tmp/upg/old/2909923/src/worker/execution.ts:84:15)\n    at Execution.start (file:///tmp/upg/old..."}',NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ92D3G2GNA3D8T4YP83MN','recorded','dead_letter',5,'2026-11-17T14:41:20.109Z',NULL,NULL,'{"deed":"die"}',NULL,2,2,'this one always fails','2026-11-17T14:41:19.779Z','2026-11-17T14:41:20.166Z','2026-11-17T14:41:20.121Z','2026-11-17T14:41:20.166Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,'{"name":"Error","code":null,"message":"this one always fails","stack":"Error: this one always fails\n    at run (file:///work/wt/upgrade/test/upgrade/record.ts:23:31)\n    at enter (file:///tmp/upg/old/2909923/src/worker/context.ts:105:10)\n    at AsyncResource.runInAsyncScope (node:async_hooks:227:14)\n    at JobScope.run (file:///tmp/upg/old/2909923/src/worker/context.ts:99:27)\n    at #call (file:///tmp/upg/old/2909923/src/worker/execution.ts:114:54)\n    at #run (file:///tmp/upg/old/2909923/src/worker/execution.ts:84:15)\n    at Execution.start (file:///tmp/upg/old..."}','dead-key',0,NULL);
INSERT INTO job_queue VALUES('01M7MZ92EZ76BD3T0EXY68YVKP','recorded','in_progress',5,'2026-11-17T14:41:19.841Z','vm:11945:1753e155','2026-11-17T14:42:20.036Z','{"deed":"hang"}',NULL,1,2,NULL,'2026-11-17T14:41:19.841Z','2026-11-17T14:41:20.036Z','2026-11-17T14:41:20.036Z',NULL,NULL,'yZRzDsCfPFbf',0,'document-1',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ92V37BVFDWXXS4K3REPG','later','queued',1,'2026-11-17T14:41:20.227Z',NULL,NULL,'{"n":1}','live-key',0,3,NULL,'2026-11-17T14:41:20.227Z','2026-11-17T14:41:20.227Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ92VZD51E20YMDKD58S4B','later','queued',5,'2026-11-17T14:42:20.256Z',NULL,NULL,'{"n":2}',NULL,0,3,NULL,'2026-11-17T14:41:20.256Z','2026-11-17T14:41:20.256Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ92WGFY1XA6S7TBK64NQG','later','dead_letter',5,'2026-11-17T14:41:20.272Z',NULL,NULL,'{"n":3}',NULL,0,3,NULL,'2026-11-17T14:41:20.272Z','2026-11-17T14:41:20.285Z',NULL,'2026-11-17T14:41:20.285Z',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'cancelled');
INSERT INTO job_queue VALUES('01M7MZ92YQM040QT4RWSV09YNS','later','queued',5,'2026-11-17T14:41:20.321Z',NULL,NULL,'{"n":5}',NULL,0,3,NULL,'2026-11-17T14:41:20.343Z','2026-11-17T14:41:20.343Z',NULL,NULL,NULL,NULL,0,'document-2',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ92Y1Y134FSY2P89F773N','later','dead_letter',5,'2026-11-17T14:41:20.321Z',NULL,NULL,'{"n":4}',NULL,0,3,NULL,'2026-11-17T14:41:20.321Z','2026-11-17T14:41:20.343Z',NULL,'2026-11-17T14:41:20.343Z',NULL,NULL,0,'document-2',1,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,'superseded');
INSERT INTO job_queue VALUES('01M7MZ92Z3K3HVKNX94MC2N9F4','recorded','queued',5,'2026-11-17T14:41:20.356Z',NULL,NULL,'{"deed":"fine"}',NULL,0,2,NULL,'2026-11-17T14:41:20.356Z','2026-11-17T14:41:20.356Z',NULL,NULL,NULL,NULL,1,'document-1',2,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ92Z57TEGW6A5S1YSFE6W','later','queued',5,'2026-11-17T14:42:20.358Z',NULL,NULL,'{"n":6}',NULL,0,3,NULL,'2026-11-17T14:41:20.358Z','2026-11-17T14:41:20.358Z',NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
INSERT INTO job_queue VALUES('01M7MZ9324NPJE9V1MYJJXA1TR','later','queued',5,'2026-11-17T14:41:20.452Z',NULL,NULL,'{"n":7}',NULL,0,3,NULL,'2026-11-17T14:41:20.452Z','2026-11-17T14:41:20.452Z',NULL,NULL,NULL,NULL,1,NULL,NULL,'{"ids":["01M7MZ92Z57TEGW6A5S1YSFE6W"],"ifDead":"wait"}',NULL,NULL,1,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE job_events (
  seq INTEGER PRIMARY KEY,
  job_id TEXT NOT NULL,
  at TEXT NOT NULL,
  name TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT,
  detail TEXT
);
INSERT INTO job_events VALUES(1,'01M7MZ92CXYAG871JNCWTEVRYJ','2026-11-17T14:41:20.099Z','failed',1,'vm:11945:1753e155','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794926480036}');
INSERT INTO job_events VALUES(2,'01M7MZ92CXYAG871JNCWTEVRYJ','2026-11-17T14:41:20.099Z','retried',1,'vm:11945:1753e155','{"delayMs":10}');
INSERT INTO job_events VALUES(3,'01M7MZ92D3G2GNA3D8T4YP83MN','2026-11-17T14:41:20.099Z','failed',1,'vm:11945:1753e155','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794926480036}');
INSERT INTO job_events VALUES(4,'01M7MZ92D3G2GNA3D8T4YP83MN','2026-11-17T14:41:20.099Z','retried',1,'vm:11945:1753e155','{"delayMs":10}');
INSERT INTO job_events VALUES(5,'01M7MZ92CXYAG871JNCWTEVRYJ','2026-11-17T14:41:20.166Z','failed',2,'vm:11945:1753e155','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794926480121}');
INSERT INTO job_events VALUES(6,'01M7MZ92CXYAG871JNCWTEVRYJ','2026-11-17T14:41:20.166Z','dead',2,'vm:11945:1753e155',NULL);
INSERT INTO job_events VALUES(7,'01M7MZ92D3G2GNA3D8T4YP83MN','2026-11-17T14:41:20.166Z','failed',2,'vm:11945:1753e155','{"name":"Error","code":null,"message":"this one always fails","startedAtMs":1794926480121}');
INSERT INTO job_events VALUES(8,'01M7MZ92D3G2GNA3D8T4YP83MN','2026-11-17T14:41:20.166Z','dead',2,'vm:11945:1753e155',NULL);
INSERT INTO job_events VALUES(9,'01M7MZ92WGFY1XA6S7TBK64NQG','2026-11-17T14:41:20.285Z','cancelled',0,NULL,'{"who":"ann","reason":"recorded","startedAtMs":null}');
INSERT INTO job_events VALUES(10,'01M7MZ92Y1Y134FSY2P89F773N','2026-11-17T14:41:20.343Z','superseded',0,NULL,'{"by":"01M7MZ92YQM040QT4RWSV09YNS"}');
CREATE TABLE job_latest (
  type TEXT NOT NULL,
  latest_key TEXT NOT NULL,
  seq INTEGER NOT NULL, idle_since TEXT,
  PRIMARY KEY (type, latest_key)
) WITHOUT ROWID;
INSERT INTO job_latest VALUES('later','document-2',2,NULL);
INSERT INTO job_latest VALUES('recorded','document-1',2,NULL);
CREATE TABLE job_after (
  after_id TEXT NOT NULL,
  job_id TEXT NOT NULL,
  if_dead TEXT NOT NULL,
  held INTEGER NOT NULL,
  PRIMARY KEY (after_id, job_id)
) WITHOUT ROWID;
INSERT INTO job_after VALUES('01M7MZ92Z57TEGW6A5S1YSFE6W','01M7MZ9324NPJE9V1MYJJXA1TR','wait',1);
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
INSERT INTO job_audit VALUES(1,'2026-11-17T14:41:20.694Z','ann','recorded','pause','','paused','{}',NULL,NULL);
CREATE TABLE job_starts (
  type TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  starts INTEGER NOT NULL
);
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
INSERT INTO millrace_clock VALUES(1,'linux 4ef89e37-72c4-4c74-8862-a966e4a15b74 time:[4026531834]',1794923135395.5849609,NULL,NULL);
CREATE TABLE millrace_records (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  revision TEXT NOT NULL,
  body TEXT NOT NULL,
  saved_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER,
  PRIMARY KEY (kind, name)
) WITHOUT ROWID;
INSERT INTO millrace_records VALUES('leader','keeper:reap+schedules+retention','f959c2ce-3eb4-4045-acd8-d7eb5fc16bed','{"holder":"vm:11945:1753e155","number":1,"leaseMs":7500}',1794926479929,1794926487429);
INSERT INTO millrace_records VALUES('pause','paused','c4e8e2bb-e1b6-472f-8288-03b89e1b95a6','{"who":"ann","reason":"recorded"}',1794926480691,NULL);
INSERT INTO millrace_records VALUES('schedule','nightly','bc3bbd4e-dc9b-431b-8551-02af189e9d5f','{"cron":"0 3 * * *","tz":"UTC","startMs":null,"endMs":null,"limit":null,"missed":"one","overlap":"skip","payload":{"n":8},"options":{},"type":"later","defaults":null,"paused":false,"runs":0,"skips":0,"missedTicks":0,"lastTickMs":null,"lastJobId":null,"declared":null,"nextAtMs":1794970800000}',1794926480679,NULL);
INSERT INTO millrace_records VALUES('worker',replace('vm:11945:1753e155\nrecorded','\n',char(10)),'','{"timestamp":"2026-11-17T14:41:19.928Z","status":"RUNNING","last_message_at":null,"consumer_lag":null,"work":{"host":"vm","pid":11945,"process":"176780c8-3a52-49f3-8fc2-36b255ffad3b","startedAtMs":1794926479918,"concurrency":4,"running":0,"jobs":[]}}',1794926479929,1794926509929);
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
CREATE INDEX idx_job_queue_ended ON job_queue(type, ended) WHERE status = 'dead_letter';
COMMIT;

