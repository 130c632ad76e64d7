package lab

import "context"

func deployPrograms(_ context.Context, r *running) (deployment, error) { return deployDirect(r) }
