// Package openapi checks the description at /openapi.json with a validator that others wrote, and that a server answers
// as it says. It is here since the validator brings modules that no user of Firn needs. It has only tests.
package openapi
