-- +goose Up

-- What a process has read of a token a moment ago is forgotten when the token is
-- deleted: the caches are notified of the tenant and the id.
CREATE TRIGGER tokens_delete AFTER DELETE ON access_tokens REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_keys('oauth.tokens', 'id');
CREATE TRIGGER tokens_delete AFTER DELETE ON refresh_tokens REFERENCING OLD TABLE AS changed
    EXECUTE FUNCTION notify_keys('oauth.tokens', 'id');
