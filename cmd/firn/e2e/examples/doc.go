// Package examples has examples of the library that need more than the standard library, such as a
// SQL driver. They are in its tests.
package examples
