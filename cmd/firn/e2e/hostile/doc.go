// Package hostile tests a server in hostile company: one address attacks it in each way that docs/security.md lists,
// while other addresses are served. The test suite runs each attack for a second; make hostile runs each for five
// minutes and prints the figures.
package hostile
