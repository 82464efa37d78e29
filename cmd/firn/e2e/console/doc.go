// Package console tests the page at / as its users see it, in a Chromium. Its server runs in the test.
//
// With SCREENSHOTS=FOLDER the test also writes pictures of each page, in both themes, languages and widths.
package console
