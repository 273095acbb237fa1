-- +goose Up

-- The caches of web configs are told which keys change, as those of policies.
CREATE TRIGGER web_configs_insert AFTER INSERT ON web_configs REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_keys('oauth.webConfigs', 'application_id');
CREATE TRIGGER web_configs_update AFTER UPDATE ON web_configs REFERENCING NEW TABLE AS changed
    EXECUTE FUNCTION notify_keys('oauth.webConfigs', 'application_id');
CREATE TRIGGER web_configs_delete AFTER DELETE ON web_configs REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_keys('oauth.webConfigs', 'application_id');
CREATE TRIGGER web_configs_truncate AFTER TRUNCATE ON web_configs EXECUTE FUNCTION notify_keys('oauth.webConfigs');
