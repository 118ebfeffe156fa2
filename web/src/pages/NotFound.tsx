import { Link } from 'wouter';
import { useTitle } from '../components/Parts';

export function NotFound() {
  useTitle('Not found');
  return (
    <div className="table__empty">
      <h1 className="page__title">There is no such page</h1>
      <Link href="/scheduling">Scheduling</Link>
    </div>
  );
}
