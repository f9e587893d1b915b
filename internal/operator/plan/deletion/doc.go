// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deletion decides what happens when a policy is deleted. It restores the
// CustomResourceDefinition first; after API servers no longer call the converter, it
// deletes the pods, and then the policy.
//
// While objects would be unreadable without the converter, the policy works as if it
// were not deleted: certificates are renewed, and a migration may be what the deletion
// waits for. The deletion policy Orphan removes only the policy itself, and everything
// that would still make changes in its name.
//
// orphan.go removes the objects of a policy that no longer exists.
package deletion
